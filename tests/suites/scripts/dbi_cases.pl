# What DBD::Pg sees. Prints a JSON line for each case: its name and everything seen.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:async);
use JSON::PP;

my $json = JSON::PP->new->canonical->ascii->allow_nonref;
my $setup = q{
DROP TABLE IF EXISTS perl_item, perl_log CASCADE;
CREATE TABLE perl_item (id int PRIMARY KEY, name text, price numeric(10,2), ratio float8, at timestamptz, flag bool, doc jsonb, tags text[], raw bytea, big int8);
INSERT INTO perl_item SELECT i, 'name ' || i, i * 1.25, i / 7.0, timestamptz '2020-01-01 UTC' + i * interval '1 hour', i % 2 = 0,
  jsonb_build_object('i', i), array['a', i::text], decode(md5(i::text), 'hex'), i::int8 * 10000000000 FROM generate_series(1, 200) i;
CREATE TABLE perl_log (id serial PRIMARY KEY, what text)};
my @reads = (
    ['SELECT * FROM perl_item ORDER BY id LIMIT 5'],
    ['SELECT name, price FROM perl_item WHERE id = ?', 42],
    ['SELECT flag, count(*), sum(price), avg(ratio) FROM perl_item GROUP BY flag ORDER BY flag'],
    ['SELECT a.id, b.name FROM perl_item a JOIN perl_item b ON b.id = a.id * 2 WHERE a.price > ? ORDER BY a.id', '100.5'],
    ['SELECT id FROM perl_item WHERE name LIKE ? ORDER BY id', 'name 1%'],
    ['SELECT id, flag FROM perl_item WHERE id IN (?, ?, ?) ORDER BY id', 3, 1, 2],
    ['SELECT id FROM perl_item WHERE id = ANY(?) ORDER BY id', [3, 1, 2]],
    ['SELECT count(*) FROM perl_item'],
    ['SELECT nothing FROM perl_item WHERE id = ?', 1],
);

sub handle {
    my %options = (RaiseError => 0, PrintError => 0, AutoCommit => 1, @_);
    my $handle = DBI->connect("dbi:Pg:dbname=$ENV{PGDATABASE};host=$ENV{PGHOST};port=$ENV{PGPORT}", $ENV{PGUSER}, '', \%options);
    die $DBI::errstr unless $handle;
    return $handle;
}

sub described {
    my ($statement) = @_;
    my @columns = map { [$statement->{NAME}[$_], $statement->{pg_type}[$_], $statement->{PRECISION}[$_], $statement->{SCALE}[$_], $statement->{NULLABLE}[$_]] }
        0 .. ($statement->{NUM_OF_FIELDS} || 0) - 1;
    my $rows = @columns ? $statement->fetchall_arrayref : [];
    $_ = defined $_ && !ref $_ && /[^ -~]/ ? unpack('H*', $_) : $_ for map { @$_ } @$rows;
    return [\@columns, $statement->rows, $rows];
}

sub asked {
    my ($handle, $text, @values) = @_;
    my $statement = $handle->prepare($text) or return failure($handle);
    $statement->execute(@values) or return failure($statement);
    return described($statement);
}

sub failure { my ($handle) = @_; return [$handle->state, $handle->errstr, $handle->err] }

my @cases = (
    ['prepared and dropped', sub {
        my $handle = handle(); my @seen;
        for my $read (@reads) { push @seen, asked($handle, @$read) for 1 .. 3 }
        return \@seen;
    }],
    ['prepared at once', sub {
        my $handle = handle(pg_switch_prepared => 0); my @seen;
        for my $read (@reads) { push @seen, asked($handle, @$read) for 1 .. 3 }
        return \@seen;
    }],
    ['not prepared', sub {
        my $handle = handle(pg_server_prepare => 0); my @seen;
        for my $read (@reads) { push @seen, asked($handle, @$read) for 1 .. 3 }
        return \@seen;
    }],
    ['one statement many times', sub {
        my $handle = handle(); my @seen;
        my $statement = $handle->prepare('SELECT id, name FROM perl_item WHERE id = ?');
        for my $id (1 .. 30) { $statement->execute($id % 7); push @seen, $statement->fetchall_arrayref }
        my $cached = sub { my $one = $handle->prepare_cached('SELECT price FROM perl_item WHERE id = ?'); $one->execute(shift); $one->fetchall_arrayref };
        push @seen, $cached->($_) for 1 .. 5;
        return \@seen;
    }],
    ['many statements at once', sub {
        my $handle = handle(pg_switch_prepared => 1); my (@kept, @seen);
        push @kept, $handle->prepare("SELECT $_, count(*) FROM perl_item WHERE id > ?") for 0 .. 39;
        for my $round (1 .. 2) { for my $at (0 .. $#kept) { $kept[$at]->execute($at); push @seen, $kept[$at]->fetchall_arrayref } }
        for my $at (grep { $_ % 3 == 0 } 0 .. $#kept) { $kept[$at]->finish; $kept[$at] = undef }
        for my $at (grep { $kept[$_] } 0 .. $#kept) { $kept[$at]->execute($at); push @seen, $kept[$at]->fetchall_arrayref }
        return \@seen;
    }],
    ['transactions', sub {
        my $handle = handle(AutoCommit => 0); my @seen;
        push @seen, asked($handle, 'INSERT INTO perl_log (what) VALUES (?) RETURNING what', 'kept'), asked($handle, 'SELECT what FROM perl_log ORDER BY id');
        $handle->commit;
        push @seen, asked($handle, 'INSERT INTO perl_log (what) VALUES (?)', 'lost'), asked($handle, 'SELECT what FROM perl_log ORDER BY id');
        $handle->rollback;
        push @seen, asked($handle, 'SELECT what FROM perl_log ORDER BY id');
        $handle->pg_savepoint('here');
        push @seen, asked($handle, 'SELECT 1/0'), asked($handle, 'SELECT count(*) FROM perl_item');
        $handle->pg_rollback_to('here');
        push @seen, asked($handle, 'SELECT count(*) FROM perl_item');
        $handle->pg_release('here');
        $handle->rollback;
        return [@seen, $handle->ping, $handle->{pg_server_version} > 0];
    }],
    ['catalog', sub {
        my $handle = handle();
        return [
            map { my $found = $_; my $rows = $found ? $found->fetchall_arrayref : []; [map { [map { defined $_ ? "$_" : undef } @$_] } @$rows] }
            $handle->table_info(undef, 'public', 'perl_%', 'TABLE'), $handle->column_info(undef, 'public', 'perl_item', '%'),
            $handle->primary_key_info(undef, 'public', 'perl_item'), $handle->statistics_info(undef, 'public', 'perl_item', 1, 0),
        ];
    }],
    ['copy', sub {
        my $handle = handle(); my @seen;
        $handle->do('COPY perl_log (id, what) FROM STDIN');
        $handle->pg_putcopydata("100$_\tline $_\n") for 1 .. 3;
        push @seen, $handle->pg_putcopyend;
        $handle->do('COPY (SELECT id, what FROM perl_log WHERE id > 1000 ORDER BY id) TO STDOUT');
        my $line = ''; while ($handle->pg_getcopydata($line) >= 0) { push @seen, $line }
        push @seen, asked($handle, 'SELECT count(*) FROM perl_log WHERE id > 1000');
        return \@seen;
    }],
    ['asynchronous', sub {
        my $handle = handle(); my @seen;
        for (1 .. 3) {
            my $statement = $handle->prepare('SELECT id, name FROM perl_item WHERE id < ? ORDER BY id', { pg_async => PG_ASYNC });
            $statement->execute(4);
            push @seen, $statement->pg_result, $statement->fetchall_arrayref;
        }
        my $slow = $handle->prepare('SELECT pg_sleep(30)', { pg_async => PG_ASYNC });
        $slow->execute;
        push @seen, $handle->pg_cancel, asked($handle, 'SELECT count(*) FROM perl_item');
        return \@seen;
    }],
    ['notifications', sub {
        my $handle = handle();
        $handle->do('LISTEN perl');
        $handle->do("NOTIFY perl, 'hello'");
        my $note = $handle->pg_notifies;
        return [$note->[0], $note->[2]];
    }],
);

handle(RaiseError => 1)->do($setup);
print $json->encode([$_->[0], $_->[1]->()]), "\n" for @cases;
