-- statement => parameters, in text.
SELECT id FROM lines WHERE t ~ $1 ORDER BY id => ^[a-z]+
SELECT id FROM lines WHERE t ~* $1 ORDER BY id => WORLD$
SELECT id, regexp_replace(t, $1, $2, 'g') FROM lines ORDER BY id => \s+ | _
SELECT id, substring(t FROM $1) FROM lines ORDER BY id => \d+
SELECT md5($1) => abc
