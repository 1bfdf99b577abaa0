-- Regular expressions; see queries.sql for the form. Texts beyond ASCII are in column u, and there only where no class is in the pattern.
SELECT id, t ~ '^h', v !~ '^h' FROM lines ORDER BY id;
SELECT id, t ~ 'world$', v !~ 'world$' FROM lines ORDER BY id;
SELECT id, t ~ '^Hello', v !~ '^Hello' FROM lines ORDER BY id;
SELECT id, t ~ 'o.w', v !~ 'o.w' FROM lines ORDER BY id;
SELECT id, t ~ '[0-9]+', v !~ '[0-9]+' FROM lines ORDER BY id;
SELECT id, t ~ '^[a-z]+$', v !~ '^[a-z]+$' FROM lines ORDER BY id;
SELECT id, t ~ '^\d{4}-\d{2}-\d{2}$', v !~ '^\d{4}-\d{2}-\d{2}$' FROM lines ORDER BY id;
SELECT id, t ~ 'a|b', v !~ 'a|b' FROM lines ORDER BY id;
SELECT id, t ~ '^(ab|bc)', v !~ '^(ab|bc)' FROM lines ORDER BY id;
SELECT id, t ~ '(abc){2}', v !~ '(abc){2}' FROM lines ORDER BY id;
SELECT id, t ~ '\.', v !~ '\.' FROM lines ORDER BY id;
SELECT id, t ~ '\w+@\w+\.\w+', v !~ '\w+@\w+\.\w+' FROM lines ORDER BY id;
SELECT id, t ~ '^https?://', v !~ '^https?://' FROM lines ORDER BY id;
SELECT id, t ~ '[^a-z ]', v !~ '[^a-z ]' FROM lines ORDER BY id;
SELECT id, t ~ '^$', v !~ '^$' FROM lines ORDER BY id;
SELECT id, t ~ '\s\s', v !~ '\s\s' FROM lines ORDER BY id;
SELECT id, t ~ 'l{2}', v !~ 'l{2}' FROM lines ORDER BY id;
SELECT id, t ~ 'a{2,3}', v !~ 'a{2,3}' FROM lines ORDER BY id;
SELECT id, t ~ 'a{4,}', v !~ 'a{4,}' FROM lines ORDER BY id;
SELECT id, t ~ '[[:digit:]]', v !~ '[[:digit:]]' FROM lines ORDER BY id;
SELECT id, t ~ '[[:alpha:]_]+$', v !~ '[[:alpha:]_]+$' FROM lines ORDER BY id;
SELECT id, t ~ '^[[:space:]]+', v !~ '^[[:space:]]+' FROM lines ORDER BY id;
SELECT id, t ~ '[]\[]', v !~ '[]\[]' FROM lines ORDER BY id;
SELECT id, t ~ '[a\-]', v !~ '[a\-]' FROM lines ORDER BY id;
SELECT id, t ~ '[-_]', v !~ '[-_]' FROM lines ORDER BY id;
SELECT id, t ~ 'x?y?z?', v !~ 'x?y?z?' FROM lines ORDER BY id;
SELECT id, t ~ 'two.lines', v !~ 'two.lines' FROM lines ORDER BY id;
SELECT id, t ~ '^lines', v !~ '^lines' FROM lines ORDER BY id;
SELECT id, t ~ '\{braces\}', v !~ '\{braces\}' FROM lines ORDER BY id;
SELECT id, t ~ '\\b', v !~ '\\b' FROM lines ORDER BY id;
SELECT id, t ~ '%$', v !~ '%$' FROM lines ORDER BY id;
SELECT id, t ~ '[\w.]+', v !~ '[\w.]+' FROM lines ORDER BY id;
SELECT id, t ~ '[\d-]{4}', v !~ '[\d-]{4}' FROM lines ORDER BY id;
SELECT id, t ~ '(?:a|b)+c', v !~ '(?:a|b)+c' FROM lines ORDER BY id;
SELECT id, t ~ '^\^caret\$$', v !~ '^\^caret\$$' FROM lines ORDER BY id;
SELECT id, t ~ '\(30\)', v !~ '\(30\)' FROM lines ORDER BY id;
SELECT id, t ~ '[[:upper:]][[:digit:]]', v !~ '[[:upper:]][[:digit:]]' FROM lines ORDER BY id;
SELECT id, t ~ '[[:punct:]]', v !~ '[[:punct:]]' FROM lines WHERE t || v !~ '[$+<=>^`|~]' ORDER BY id;
-- relay: by some collations only
SELECT id, t ~ '[[:punct:]]', v !~ '[[:punct:]]' FROM lines ORDER BY id;
SELECT id, t ~ '\D{3}', v !~ '\D{3}' FROM lines ORDER BY id;
SELECT id, t ~ '\S+\s\S+', v !~ '\S+\s\S+' FROM lines ORDER BY id;
SELECT id, t ~ '\W', v !~ '\W' FROM lines ORDER BY id;
SELECT id, t ~ '{', v !~ '{' FROM lines ORDER BY id;
SELECT id, t ~ '}', v !~ '}' FROM lines ORDER BY id;
SELECT id, t ~ 'a{,2}', v !~ 'a{,2}' FROM lines ORDER BY id;
SELECT id, t ~ ']', v !~ ']' FROM lines ORDER BY id;
SELECT id, t ~ '[^]]$', v !~ '[^]]$' FROM lines ORDER BY id;
SELECT id, t ~ 'o\tw', v !~ 'o\tw' FROM lines ORDER BY id;
SELECT id, t ~ 'b\there', v !~ 'b\there' FROM lines ORDER BY id;
SELECT id, t ~ 'é|é', v !~ 'é|é' FROM lines ORDER BY id;
SELECT id, t ~ '.{10}', v !~ '.{10}' FROM lines ORDER BY id;
SELECT id, t ~ '^.{0,3}$', v !~ '^.{0,3}$' FROM lines ORDER BY id;
SELECT id, t ~ '((a)(b)(c))', v !~ '((a)(b)(c))' FROM lines ORDER BY id;
SELECT id, t ~ 'a+b+c+', v !~ 'a+b+c+' FROM lines ORDER BY id;
SELECT id, t ~ '[a-cx-z]', v !~ '[a-cx-z]' FROM lines ORDER BY id;
SELECT id, t ~ '/[a-z]\?', v !~ '/[a-z]\?' FROM lines ORDER BY id;
SELECT id, t ~* 'h', t !~* 'h' FROM lines ORDER BY id;
SELECT id, t ~* 'WORLD', t !~* 'WORLD' FROM lines ORDER BY id;
SELECT id, t ~* '[A-C]1', t !~* '[A-C]1' FROM lines ORDER BY id;
SELECT id, t ~* 'id=[0-9]+', t !~* 'id=[0-9]+' FROM lines ORDER BY id;
SELECT id, t ~* '^HTTPS?', t !~* '^HTTPS?' FROM lines ORDER BY id;
SELECT id, u ~ 'o w' FROM lines ORDER BY id;
SELECT id, u ~ '^h' FROM lines ORDER BY id;
SELECT id, u ~ 'é$' FROM lines ORDER BY id;
SELECT id, u ~ '[^a]$' FROM lines ORDER BY id;
SELECT id, u ~ '.$' FROM lines ORDER BY id;
SELECT id, u ~ '[x-é]' FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '\s+', ' '), regexp_replace(t, '\s+', ' ', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '[^0-9]', ''), regexp_replace(t, '[^0-9]', '', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '[^0-9]+', '-'), regexp_replace(t, '[^0-9]+', '-', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '^\s+', ''), regexp_replace(t, '^\s+', '', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '\s+$', ''), regexp_replace(t, '\s+$', '', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, 'o', '0'), regexp_replace(t, 'o', '0', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, 'a.*c', '<>'), regexp_replace(t, 'a.*c', '<>', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '^0+', ''), regexp_replace(t, '^0+', '', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, 'https?://', ''), regexp_replace(t, 'https?://', '', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '[aeiou]{1,2}', '*'), regexp_replace(t, '[aeiou]{1,2}', '*', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '(\d)-', 'x'), regexp_replace(t, '(\d)-', 'x', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, 'l+', 'L'), regexp_replace(t, 'l+', 'L', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '.', '#'), regexp_replace(t, '.', '#', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, 'id=\d+', 'ID'), regexp_replace(t, 'id=\d+', 'ID', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '[_.-]', ' '), regexp_replace(t, '[_.-]', ' ', 'g') FROM lines ORDER BY id;
SELECT id, substring(t FROM '[0-9]+'), substring(v, '[0-9]+') FROM lines ORDER BY id;
SELECT id, substring(t FROM 'id=(\d+)'), substring(v, 'id=(\d+)') FROM lines ORDER BY id;
SELECT id, substring(t FROM '@(.+)'), substring(v, '@(.+)') FROM lines ORDER BY id;
SELECT id, substring(t FROM '^(\w)'), substring(v, '^(\w)') FROM lines ORDER BY id;
SELECT id, substring(t FROM '(a)bc'), substring(v, '(a)bc') FROM lines ORDER BY id;
SELECT id, substring(t FROM 'q.*3'), substring(v, 'q.*3') FROM lines ORDER BY id;
SELECT id, substring(t FROM 'b.'), substring(v, 'b.') FROM lines ORDER BY id;
SELECT id, substring(t FROM '://([a-z])'), substring(v, '://([a-z])') FROM lines ORDER BY id;
SELECT id, substring(t FROM '[a-z]{3}'), substring(v, '[a-z]{3}') FROM lines ORDER BY id;
SELECT id, substring(t FROM '(?:qty)=(\d)'), substring(v, '(?:qty)=(\d)') FROM lines ORDER BY id;
SELECT id, substring(t FROM '\{(.+)\}'), substring(v, '\{(.+)\}') FROM lines ORDER BY id;
SELECT id, substring(t FROM 'l+'), substring(v, 'l+') FROM lines ORDER BY id;
SELECT id, c ~ 'o *$', c ~ '^hello', regexp_replace(c, ' ', '') FROM lines ORDER BY id;
SELECT count(*) FROM lines WHERE t ~ '^[a-z]' AND t !~* 'WORLD';
SELECT substring(t FROM '[a-z]+') AS w, count(*) FROM lines GROUP BY 1 ORDER BY 1 NULLS FIRST;
SELECT a.id, b.id FROM lines a JOIN lines b ON a.t ~ ('^' || substring(b.t FROM '^[a-z]')) AND b.id < 8 ORDER BY a.id, b.id;
SELECT id, NULL ~ 'a', t ~ NULL FROM lines ORDER BY id;
SELECT id, md5(t), md5(id::text), md5(u), md5('\x00ff'::bytea) FROM lines ORDER BY id;
SELECT upper(md5(v)) || '!' FROM lines WHERE id < 4 ORDER BY id;
SELECT id FROM lines WHERE t SIMILAR TO '%(hello|world)%' ORDER BY id;
SELECT id, t SIMILAR TO '[a-z]+%', t NOT SIMILAR TO '_____%', v SIMILAR TO 'a|b' ESCAPE '#' FROM lines ORDER BY id;
-- relay: the longest of several
SELECT substring(t FROM 'a+b+') FROM lines ORDER BY id;
-- relay: back references
SELECT t ~ '(a)\1' FROM lines ORDER BY id;
-- relay: look-ahead
SELECT t ~ 'a(?=b)' FROM lines ORDER BY id;
-- relay: word boundaries
SELECT t ~ '\yworld\y' FROM lines ORDER BY id;
-- relay: options
SELECT t ~ '(?i)HELLO' FROM lines ORDER BY id;
SELECT regexp_replace(t, '(\d)', '<\1>'), regexp_replace(t, '(\d)', '<\1\2\0\\\q\>', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '[a-z]+', '<\&>', 'g'), regexp_replace(u, '[0-9]', '\\', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '^https?://(?:www\.)?([^/]+)/.*$', '\1') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '^(.)(.*)$', '\2\1'), regexp_replace(t, '^([^ ]*) (.*)$', '\2 \1', 'g') FROM lines ORDER BY id;
SELECT id, regexp_replace(t, '(o?)l+(.*)', '\1|\2'), substring(t FROM 'l*([a-z]+).*') FROM lines WHERE t !~ '\n' ORDER BY id;
SELECT id, regexp_replace('https://www.example.org/a/' || id, '^https?://(?:www\.)?([^/]+)/(.*)$', '\2@\1') FROM lines ORDER BY id;
SELECT id, u ~ '\d', u ~ '\D$', u ~ '\s', regexp_replace(u, '\s', '', 'g'), substring(u FROM '[[:digit:]]+') FROM lines ORDER BY id;
SELECT id, regexp_replace(u || ' – „ΑΩ“ 漢字 😀 €', '\s+', '_', 'g') FROM lines ORDER BY id;
SELECT regexp_replace(t, 'HELLO', 'x', 'gi'), regexp_replace(t, 'HELLO', 'x', 'ic'), regexp_replace(t, 'L+', '', 'ci') FROM lines ORDER BY id;
-- relay: classes beyond ASCII
SELECT u ~ '\w$' FROM lines ORDER BY id;
-- relay: flags
SELECT regexp_replace(t, 'HELLO', 'x', 'gn') FROM lines ORDER BY id;
-- relay: white space by some collations only
SELECT regexp_replace(u || U&'\00a0x', '\s', '') FROM lines ORDER BY id;
-- relay: a group is its longest before what is in it
SELECT regexp_replace('xabc' || t, 'x((a?)((?:ab)?))(.*)', '[\1|\2|\3|\4]') FROM lines ORDER BY id;
-- relay: a group is its longest before what is in it
SELECT regexp_replace('xabc' || t, 'x(?:(a?)((?:ab)?))(.*)', '[\1|\2|\3]'), substring('xabc' || t FROM 'x((a?)((?:ab)?)).*') FROM lines ORDER BY id;
-- relay: a match of several parts that ends before the text does
SELECT id, regexp_replace('abab.' || id, '(a?)(b?)a', '\1') FROM lines ORDER BY id;
-- relay: matches of nothing
SELECT regexp_replace(t, 'x*', '-', 'g') FROM lines ORDER BY id;
-- relay: an error
SELECT id, t ~ '[\w-.]+' FROM lines ORDER BY id;
-- relay: an error
SELECT id FROM lines WHERE t ~ '[[:alpha:]-z]' ORDER BY id;
