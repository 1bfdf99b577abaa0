// What node-postgres and postgres.js see. Prints a JSON line for each case: its name and everything seen.
import pg from 'pg';
import Cursor from 'pg-cursor';
import postgres from 'postgres';

const SETUP = `
DROP TABLE IF EXISTS node_item, node_log CASCADE;
CREATE TABLE node_item (id int PRIMARY KEY, name text, price numeric(10,2), ratio float8, at timestamptz, flag bool, doc jsonb, tags text[], raw bytea, big int8);
INSERT INTO node_item SELECT i, 'name ' || i, i * 1.25, i / 7.0, timestamptz '2020-01-01 UTC' + i * interval '1 hour', i % 2 = 0,
  jsonb_build_object('i', i), array['a', i::text], decode(md5(i::text), 'hex'), i::int8 * 10000000000 FROM generate_series(1, 200) i;
CREATE TABLE node_log (id serial PRIMARY KEY, what text);`;
const READS = [
  ['SELECT * FROM node_item ORDER BY id LIMIT 5', []],
  ['SELECT name, price FROM node_item WHERE id = $1', [42]],
  ['SELECT flag, count(*), sum(price), avg(ratio) FROM node_item GROUP BY flag ORDER BY flag', []],
  ['SELECT a.id, b.name FROM node_item a JOIN node_item b ON b.id = a.id * 2 WHERE a.price > $1 ORDER BY a.id', ['100.5']],
  ['SELECT id FROM node_item WHERE name LIKE $1 ORDER BY id', ['name 1%']],
  ['SELECT id FROM node_item WHERE id = ANY($1) ORDER BY id', [[3, 1, 2]]],
  ['SELECT count(*) FROM node_item', []],
];

const client = async () => {
  const connection = new pg.Client({ database: 'cases' });
  await connection.connect();
  return connection;
};
const described = (result) => [
  result.command, result.rowCount, result.rows,
  result.fields.map((f) => [f.name, f.columnID, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format]),
];
const failure = (error) => [error.severity, error.code, error.message, error.detail, error.hint, error.position];
const attempt = async (promise) => promise.then((value) => value, failure);

const cases = {
  async extended(connection) {
    const seen = [];
    for (const [text, values] of READS) for (let i = 0; i < 3; i++) seen.push(described(await connection.query(text, values)));
    return seen;
  },
  async simple(connection) {
    const seen = [];
    for (const [text, values] of READS.filter(([, values]) => values.length === 0))
      for (let i = 0; i < 3; i++) seen.push(described(await connection.query(text)));
    const several = await connection.query('SELECT 1 AS a; SELECT id FROM node_item WHERE id < 3 ORDER BY id; UPDATE node_log SET what = what');
    return [...seen, several.map(described)];
  },
  async named(connection) {
    const seen = [];
    for (const [at, [text, values]] of READS.entries())
      for (let i = 0; i < 3; i++) seen.push(described(await connection.query({ name: `read ${at}`, text, values })));
    return seen;
  },
  async arrays_and_binary(connection) {
    const seen = [];
    for (const [text, values] of READS) {
      seen.push((await connection.query({ text, values, rowMode: 'array' })).rows);
      for (let i = 0; i < 2; i++)
        seen.push((await connection.query({ text: 'SELECT id, flag, big FROM node_item WHERE id = $1', values: [i], binary: true })).rows);
    }
    return seen;
  },
  async queued(connection) {
    // Sent without waiting; node-postgres sends the next when the last is done.
    const results = await Promise.all([...Array(50).keys()].map((i) => connection.query('SELECT id, name FROM node_item WHERE id = $1', [i])));
    return results.map((result) => result.rows);
  },
  async cursor(connection) {
    const seen = [];
    for (const size of [7, 100, 1000]) {
      const cursor = connection.query(new Cursor('SELECT id, name FROM node_item WHERE id > $1 ORDER BY id', [150]));
      for (;;) {
        const rows = await cursor.read(size);
        seen.push(rows);
        if (rows.length === 0) break;
      }
      await cursor.close();
    }
    const left = connection.query(new Cursor('SELECT id FROM node_item ORDER BY id'));
    seen.push(await left.read(3));
    await left.close();
    return [...seen, (await connection.query('SELECT 1 AS after')).rows];
  },
  async transactions(connection) {
    const seen = [];
    await connection.query('BEGIN');
    seen.push((await connection.query('SELECT count(*) FROM node_log')).rows);
    await connection.query("INSERT INTO node_log (what) VALUES ('kept')");
    seen.push((await connection.query('SELECT what FROM node_log ORDER BY id')).rows);
    await connection.query('SAVEPOINT s');
    seen.push(await attempt(connection.query('SELECT 1 / 0')));
    seen.push(await attempt(connection.query('SELECT 1')));
    await connection.query('ROLLBACK TO s');
    await connection.query('COMMIT');
    await connection.query('BEGIN');
    await connection.query("INSERT INTO node_log (what) VALUES ('lost')");
    await connection.query('ROLLBACK');
    seen.push((await connection.query('SELECT what FROM node_log ORDER BY id')).rows);
    return seen;
  },
  async errors(connection) {
    const seen = [];
    for (const [text, values] of [
      ['SELECT * FROM nowhere', []], ['SELECT 1 / $1::int', [0]], ['SELEC', []], ['SELECT $1::int', ['x']],
      ['INSERT INTO node_item (id) VALUES (1)', []], ['SELECT id / (id - 5) FROM node_item', []],
      [{ name: 'broken', text: 'SELECT nothing FROM node_item' }, []], [{ name: 'broken', text: 'SELECT 1 AS mended' }, []],
    ]) seen.push(await attempt(connection.query(text, values).then(described)));
    return seen;
  },
  async notifications(connection) {
    const seen = [];
    const done = new Promise((resolve) => connection.on('notification', (n) => {
      seen.push([n.channel, n.payload]);
      if (seen.length === 5) resolve();
    }));
    await connection.query('LISTEN node_channel');
    const other = await client();
    for (let i = 0; i < 5; i++) {
      await other.query(`NOTIFY node_channel, 'payload ${i}'`);
      await connection.query('SELECT name FROM node_item WHERE id = $1', [i]);
    }
    await done;
    await other.end();
    return seen;
  },
  async writes_are_seen(connection) {
    const seen = [];
    const other = await client();
    for (let i = 0; i < 20; i++) {
      await other.query('UPDATE node_item SET name = $1 WHERE id = 1', [`changed ${i}`]);
      seen.push((await connection.query('SELECT name FROM node_item WHERE id = 1')).rows);
    }
    await other.end();
    return seen;
  },
};

// postgres.js describes and executes in one go, pipelines, and prepares every statement under a name.
const postgresJs = async () => {
  const sql = postgres({ database: 'cases', username: process.env.PGUSER, max: 2, onnotice: () => {} });
  const seen = [];
  for (let i = 0; i < 3; i++) {
    seen.push(await sql`SELECT id, name, price, flag, doc, tags FROM node_item WHERE id = ${5 + i}`);
    seen.push(await sql`SELECT flag, count(*)::int AS n FROM node_item GROUP BY flag ORDER BY flag`);
    seen.push(await sql`SELECT id FROM node_item WHERE id IN ${sql([1, 2, 3])} ORDER BY id`);
  }
  seen.push(await Promise.all([...Array(40).keys()].map((i) => sql`SELECT id, name FROM node_item WHERE id = ${i}`)));
  seen.push(await sql.unsafe('SELECT 1 AS a; SELECT 2 AS b'));
  const chunks = [];
  for await (const rows of sql`SELECT id FROM node_item ORDER BY id`.cursor(30)) chunks.push(rows.map((row) => row.id));
  seen.push(chunks);
  seen.push(await attempt(sql`SELECT * FROM nowhere`));
  seen.push(await attempt(sql.begin(async (inside) => {
    await inside`INSERT INTO node_log (what) VALUES ('js')`;
    await inside.savepoint(async (deeper) => deeper`INSERT INTO node_log (what) VALUES ('deeper')`);
    return inside`SELECT what FROM node_log ORDER BY id`;
  })));
  seen.push((await sql`DELETE FROM node_log RETURNING what`).map((row) => row.what));
  await sql.end();
  return seen;
};

const first = await client();
await first.query(SETUP);
await first.end();
for (const [name, run] of Object.entries(cases)) {
  const connection = await client();
  console.log(JSON.stringify([name, await run(connection)]));
  await connection.end();
}
console.log(JSON.stringify(['postgres.js', await postgresJs()]));
