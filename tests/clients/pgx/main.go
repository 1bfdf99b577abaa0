// Statements by pgx (prepared, binary) against PostgreSQL and through freshet: equal values, answered by freshet.
// Prints "ok" or what differs, a line for each statement.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

type statement struct {
	sql        string
	parameters []any
}

var statements = []statement{
	{"SELECT carrier, count(*) AS n, avg(dep_delay) AS delay FROM flights GROUP BY carrier ORDER BY carrier", nil},
	{"SELECT name, lat, lon, alt FROM airports WHERE faa = $1", []any{"JFK"}},
	{"SELECT count(*), sum(distance) FROM flights WHERE distance > $1 AND origin = $2", []any{1000, "EWR"}},
	{"SELECT date_trunc('month', time_hour) AS month, sum(distance) AS miles FROM flights GROUP BY 1 ORDER BY 1", nil},
	{"SELECT tailnum, year, seats FROM planes WHERE manufacturer LIKE $1 ORDER BY tailnum LIMIT $2", []any{"AIR%", 5}},
	{"SELECT avg(temp), max(wind_gust), min(time_hour) FROM weather WHERE month = $1", []any{7}},
}

func rows(ctx context.Context, connection *pgx.Conn, s statement) ([][]any, error) {
	result, err := connection.Query(ctx, s.sql, s.parameters...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(result, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

func same(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || math.Abs(x-y) <= 1e-9*math.Abs(x))
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case pgtype.Numeric:
		y, ok := b.(pgtype.Numeric)
		if !ok || x.Valid != y.Valid || x.NaN != y.NaN {
			return false
		}
		return !x.Valid || (x.Int.Cmp(y.Int) == 0 && x.Exp == y.Exp)
	}
	return reflect.DeepEqual(a, b)
}

func compare(ctx context.Context, direct, through *pgx.Conn, s statement) string {
	expected, err := rows(ctx, direct, s)
	if err != nil {
		return err.Error()
	}
	var got [][]any
	var route, reason string
	for attempt := 0; attempt < 100; attempt++ {
		if got, err = rows(ctx, through, s); err != nil {
			return err.Error()
		}
		last, err := through.Query(ctx, "SHOW freshet.last", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err.Error()
		}
		for last.Next() {
			values, _ := last.Values()
			route, _ = values[0].(string)
			reason, _ = values[1].(string)
		}
		if last.Close(); last.Err() != nil {
			return last.Err().Error()
		}
		if route == "hit" || route == "local" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(expected) != len(got) {
		return fmt.Sprintf("%d rows, not %d: %s", len(got), len(expected), s.sql)
	}
	for i := range expected {
		for j := range expected[i] {
			if !same(expected[i][j], got[i][j]) {
				return fmt.Sprintf("row %d column %d: %v, not %v: %s", i, j, got[i][j], expected[i][j], s.sql)
			}
		}
	}
	if route != "hit" && route != "local" {
		return fmt.Sprintf("answered by %s (%s): %s", route, reason, s.sql)
	}
	return "ok"
}

func main() {
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, os.Getenv("DIRECT"))
	if err != nil {
		fmt.Println(err)
		return
	}
	through, err := pgx.Connect(ctx, os.Getenv("THROUGH"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range statements {
		fmt.Println(compare(ctx, direct, through, s))
	}
}
