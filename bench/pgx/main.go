// The driver suite's matrix by pgx. The bench says what to do, one JSON object per line on standard input, and gets one
// per line on standard output; connections stay open from one cell to the next. Ends when its input does.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	pool     = 10
	inFlight = 100
	// Longer than anything that is asked takes: a hang ends with an error.
	patience = 5 * time.Minute
)

type request struct {
	Op         string    `json:"op"`
	System     string    `json:"system"`
	Url        string    `json:"url"`
	Setting    string    `json:"setting"`
	Sql        string    `json:"sql"`
	Parameters [][]int32 `json:"parameters"`
	Seconds    float64   `json:"seconds"`
}

type answer struct {
	Error       string      `json:"error,omitempty"`
	Count       int         `json:"count"`
	ElapsedNs   int64       `json:"elapsed_ns"`
	ClientNs    int64       `json:"client_ns"`
	LatenciesNs []int64     `json:"latencies_ns"`
	Digest      string      `json:"digest"`
	Rows        [][]*string `json:"rows"`
}

type system struct {
	conns      []*pgx.Conn
	parameters [][]any
}

var systems = map[string]*system{}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<24)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var asked request
		reply := answer{}
		err := json.Unmarshal(input.Bytes(), &asked)
		if err == nil {
			err = reply.within(patience, &asked)
		}
		if err != nil {
			reply.Error = err.Error()
		}
		if output.Encode(&reply) != nil {
			return
		}
	}
}

func (reply *answer) within(limit time.Duration, asked *request) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return reply.carryOut(ctx, asked)
}

func (reply *answer) carryOut(ctx context.Context, asked *request) error {
	if asked.Op == "open" {
		return open(ctx, asked)
	}
	at, known := systems[asked.System]
	if !known {
		return fmt.Errorf("system %s is not open", asked.System)
	}
	limit := time.Duration(asked.Seconds * float64(time.Second))
	before, began := processorTime(), time.Now()
	var err error
	switch asked.Op {
	case "check":
		reply.Digest, err = at.digest(ctx)
	case "single":
		reply.Count, reply.LatenciesNs, err = at.single(ctx, 0, limit)
	case "pipeline":
		reply.Count, err = at.pipeline(ctx, limit)
	case "pool10":
		reply.Count, reply.LatenciesNs, err = at.pool(ctx, limit)
	case "batch":
		reply.Count, err = at.batch(ctx, nil)
	case "batch rows":
		reply.Count, err = at.batch(ctx, func(row [][]byte) { reply.Rows = append(reply.Rows, cells(row)) })
	case "last route":
		reply.Rows, err = at.lastRoute(ctx)
	default:
		err = fmt.Errorf("unknown: %s", asked.Op)
	}
	reply.ElapsedNs = time.Since(began).Nanoseconds()
	reply.ClientNs = processorTime() - before
	return err
}

// The statement is prepared on each connection; those of the statement before are closed.
func open(ctx context.Context, asked *request) error {
	if before, known := systems[asked.System]; known {
		for _, conn := range before.conns {
			conn.Close(ctx)
		}
	}
	at := &system{}
	for _, values := range asked.Parameters {
		row := make([]any, len(values))
		for i, value := range values {
			row[i] = value
		}
		at.parameters = append(at.parameters, row)
	}
	for range pool {
		conn, err := pgx.Connect(ctx, asked.Url)
		if err != nil {
			return err
		}
		if asked.Setting != "" {
			if _, err := conn.Exec(ctx, asked.Setting, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		if _, err := conn.Prepare(ctx, "q", asked.Sql); err != nil {
			return err
		}
		at.conns = append(at.conns, conn)
	}
	systems[asked.System] = at
	return nil
}

func (at *system) once(ctx context.Context, conn int, n int) error {
	rows, err := at.conns[conn].Query(ctx, "q", at.parameters[n%len(at.parameters)]...)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}

// One statement after the other on one connection.
func (at *system) single(ctx context.Context, conn int, limit time.Duration) (int, []int64, error) {
	var latencies []int64
	for began := time.Now(); time.Since(began) < limit; {
		started := time.Now()
		if err := at.once(ctx, conn, conn+len(latencies)); err != nil {
			return 0, nil, err
		}
		latencies = append(latencies, time.Since(started).Nanoseconds())
	}
	return len(latencies), latencies, nil
}

// A hundred in flight on one connection, each with a Sync of its own.
func (at *system) pipeline(ctx context.Context, limit time.Duration) (int, error) {
	count := 0
	for began := time.Now(); time.Since(began) < limit; count += inFlight {
		pipeline := at.conns[0].PgConn().StartPipeline(ctx)
		for n := range inFlight {
			pipeline.SendQueryPrepared("q", text(at.parameters[n%len(at.parameters)]), nil, nil)
			pipeline.SendPipelineSync()
		}
		if err := pipeline.Flush(); err != nil {
			return 0, err
		}
		// Each has a result and the end of its Sync.
		if _, err := drain(pipeline, 2*inFlight, nil); err != nil {
			return 0, err
		}
		if err := pipeline.Close(); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// Every connection by a goroutine of its own.
func (at *system) pool(ctx context.Context, limit time.Duration) (int, []int64, error) {
	var group sync.WaitGroup
	latencies, errors := make([][]int64, pool), make([]error, pool)
	for conn := range pool {
		group.Go(func() { _, latencies[conn], errors[conn] = at.single(ctx, conn, limit) })
	}
	group.Wait()
	var all []int64
	for conn := range pool {
		if errors[conn] != nil {
			return 0, nil, errors[conn]
		}
		all = append(all, latencies[conn]...)
	}
	return len(all), all, nil
}

// All parameters once, with one Sync; how many rows came. Each is shown to see, where there is one.
func (at *system) batch(ctx context.Context, see func([][]byte)) (int, error) {
	pipeline := at.conns[0].PgConn().StartPipeline(ctx)
	for _, values := range at.parameters {
		pipeline.SendQueryPrepared("q", text(values), nil, nil)
	}
	if err := pipeline.Sync(); err != nil {
		return 0, err
	}
	count, err := drain(pipeline, len(at.parameters)+1, see)
	if err != nil {
		return 0, err
	}
	return count, pipeline.Close()
}

// Reads so many results, the end of a Sync being one; how many rows they have.
func drain(pipeline *pgconn.Pipeline, results int, see func([][]byte)) (int, error) {
	count := 0
	for range results {
		result, err := pipeline.GetResults()
		if err != nil {
			return 0, err
		}
		reader, is := result.(*pgconn.ResultReader)
		if !is {
			continue
		}
		for reader.NextRow() {
			count++
			if see != nil {
				see(reader.Values())
			}
		}
		if _, err := reader.Close(); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// The same for the same rows, whatever their order.
func (at *system) digest(ctx context.Context) (string, error) {
	all := sha256.New()
	for _, values := range at.parameters {
		rows, err := at.conns[0].Query(ctx, "q", values...)
		if err != nil {
			return "", err
		}
		var lines []string
		for rows.Next() {
			cells, err := rows.Values()
			if err != nil {
				return "", err
			}
			lines = append(lines, fmt.Sprintf("%#v", cells))
		}
		if rows.Err() != nil {
			return "", rows.Err()
		}
		sort.Strings(lines)
		fmt.Fprintln(all, len(lines), lines)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// How freshet says that it answered the last statement of the first connection.
func (at *system) lastRoute(ctx context.Context) ([][]*string, error) {
	results, err := at.conns[0].PgConn().Exec(ctx, "SHOW freshet.last").ReadAll()
	if err != nil {
		return nil, err
	}
	var all [][]*string
	for _, result := range results {
		for _, row := range result.Rows {
			all = append(all, cells(row))
		}
	}
	return all, nil
}

// A row that came as text; nil for NULL.
func cells(row [][]byte) []*string {
	texts := make([]*string, len(row))
	for i, cell := range row {
		if cell != nil {
			copied := string(cell)
			texts[i] = &copied
		}
	}
	return texts
}

func text(values []any) [][]byte {
	texts := make([][]byte, len(values))
	for i, value := range values {
		texts[i] = strconv.AppendInt(nil, int64(value.(int32)), 10)
	}
	return texts
}

func processorTime() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
