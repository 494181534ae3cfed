package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// sample is one line of compare's raw output.
type sample struct {
	Name     string  `json:"name"`
	Scenario string  `json:"scenario"`
	Rate     float64 `json:"rate"`

	Throughput float64 `json:"rps"`
	CPU        float64 `json:"cpu_us"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Bad        int     `json:"bad"`
	// Latencies holds the latencies of the open loop, in microseconds.
	Latencies []float64 `json:"latencies_us"`
	// Awake reports whether processors could not go to sleep during the open loop.
	Awake bool `json:"awake"`

	Foreign float64 `json:"foreign"` // the part of all processors that other processes took, 0 to 1

	PerStream   float64 `json:"kb_per_stream"`
	CPUPerEvent float64 `json:"cpu_us_per_event"`
	Failed      int     `json:"failed"`
	Broken      int     `json:"broken"`
}

// comparison is one run of compare, and the figures that come from it.
type comparison struct {
	scenarios string // for compare's --only
	body      int    // bytes
	rate      int    // requests per second of the open loop; 0: none
	keys      bool   // callers have API keys instead of tokens
	tls       bool   // the gateway and plain Caddy listen with TLS, too
	wide      bool   // everything has all processors
	figures   []derived
}

// derived is a figure that is computed from samples of the gateway and of plain Caddy, pair by pair.
type derived struct {
	name     string // of the figure
	scenario string
	open     bool // of the open loop's samples
	together bool // note also the p99 of all samples together
	first    bool // the first pair only: memory is that of a fresh process
	value    func(gateway, caddy sample) float64
}

var comparisons = []comparison{
	{scenarios: "mcp", body: 220, rate: 400, figures: []derived{
		{name: "P1 220 B", scenario: "mcp", value: throughput}, {name: "P2 220 B", scenario: "mcp", value: cpu},
		{name: "P3 p50", scenario: "mcp", open: true, value: func(g, c sample) float64 { return g.P50 - c.P50 }},
		{name: "P3 p99", scenario: "mcp", open: true, together: true, value: func(g, c sample) float64 { return g.P99 - c.P99 }},
	}},
	{scenarios: "mcp", body: 2 << 10, figures: []derived{
		{name: "P1 2 KB", scenario: "mcp", value: throughput}, {name: "P2 2 KB", scenario: "mcp", value: cpu},
	}},
	{scenarios: "mcp", body: 10 << 10, figures: []derived{
		{name: "P1 10 KB", scenario: "mcp", value: throughput}, {name: "P2 10 KB", scenario: "mcp", value: cpu},
	}},
	{scenarios: "mcptls,mcph2", body: 220, tls: true, figures: []derived{
		{name: "P11 HTTP/1.1", scenario: "mcptls", value: throughput}, {name: "P11 HTTP/1.1 CPU", scenario: "mcptls", value: cpu},
		{name: "P11 HTTP/2", scenario: "mcph2", value: throughput}, {name: "P11 HTTP/2 CPU", scenario: "mcph2", value: cpu},
	}},
	{scenarios: "mcp", body: 220, wide: true, figures: []derived{
		{name: "P1 all processors", scenario: "mcp", value: throughput}, {name: "P2 all processors", scenario: "mcp", value: cpu},
	}},
	{scenarios: "mcpsse", body: 220, figures: []derived{{name: "P5 call", scenario: "mcpsse", value: cpu}}},
	{scenarios: "chat", keys: true, figures: []derived{{name: "P7", scenario: "chat", value: throughput}}},
	{scenarios: "idle", figures: []derived{
		{name: "P4", scenario: "sse-idle", first: true, value: func(g, c sample) float64 { return g.PerStream / c.PerStream }},
	}},
	{scenarios: "fanout", figures: []derived{
		{name: "P5 event", scenario: "sse-fanout", value: func(g, c sample) float64 { return g.CPUPerEvent / c.CPUPerEvent }},
	}},
}

func throughput(g, c sample) float64 { return g.Throughput / c.Throughput }
func cpu(g, c sample) float64        { return g.CPU / c.CPU }

// measure runs the comparisons and measurements that the figures need. Each comparison has a gateway of its own, as
// fresh as the others that compare starts.
func (b *bench) measure(ctx context.Context, figures []figure) map[string]measurement {
	measured := make(map[string]measurement)
	for n, c := range comparisons {
		c.figures = slices.DeleteFunc(slices.Clone(c.figures), func(d derived) bool {
			return !slices.ContainsFunc(figures, func(f figure) bool { return f.name() == d.name })
		})
		if len(c.figures) == 0 {
			continue
		}
		if !slices.ContainsFunc(c.figures, func(d derived) bool { return d.open }) {
			c.rate = 0
		}
		samples, err := b.compare(ctx, n, c)
		for _, d := range c.figures {
			m := d.from(samples)
			if len(m.values) == 0 || ctx.Err() == nil {
				m.err = err // samples from before the time was up still count
			}
			measured[d.name] = m
			if b.other != nil {
				measured["other "+d.name] = d.against(samples)
			}
		}
	}
	if wants(figures, "P8") {
		measured["P8 seen"], measured["P8 caddy"] = b.unseenTokens(ctx)
	}
	if wants(figures, "P10") {
		measured["P10"] = b.firstAnswer(ctx)
	}
	if wants(figures, "P9") {
		measured["P9"] = b.exactness(ctx)
	}
	for name, as := range map[string]way{"audit": narrow, "audit all processors": wide()} {
		if slices.ContainsFunc(figures, func(f figure) bool { return f.name() == name }) {
			measured[name] = b.auditCost(ctx, as)
		}
	}
	if wants(figures, "P6") {
		measured["P6 call"], measured["P6 counter"] = b.scale(ctx)
	}
	return measured
}

// compare runs the script of that name and returns its samples, also those before an error.
func (b *bench) compare(ctx context.Context, n int, c comparison) ([]sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	arguments, stop, err := b.startCompared(ctx, c)
	if err != nil {
		return nil, err
	}
	defer stop()
	raw := filepath.Join(b.bench, "out", fmt.Sprint("raw-", n, ".jsonl"))
	command := exec.CommandContext(ctx, "python3", append([]string{filepath.Join(b.bench, "compare"), "--raw", raw, "--only", c.scenarios,
		"--rounds", strconv.Itoa(b.rounds), "--secs", fmt.Sprint(b.seconds), "--rate", strconv.Itoa(c.rate), "--body", strconv.Itoa(c.body),
		"--without", "direct", "--retries", "1", "--patience", "3"}, arguments...)...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr // its tables are for people who watch
	// On a request to end, it ends the processes that it has started.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 20 * time.Second
	err = command.Run()
	if err != nil {
		err = fmt.Errorf("comparing: %w", err)
	}
	samples, readErr := readSamples(raw)
	return samples, errors.Join(err, readErr)
}

// startCompared starts the gateway, and the other one of -against, and returns compare's arguments for them, and a
// function that stops them.
func (b *bench) startCompared(ctx context.Context, c comparison) (arguments []string, stop func(), err error) {
	as := narrow
	if c.wide {
		as, arguments = wide(), append(arguments, "--wide")
	}
	if c.tls {
		as.file, arguments = "tls.Caddyfile", append(arguments, "--certificate", b.directory)
	}
	var running []*process
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	for name, side := range map[string]*bench{"durward": b, "other": b.other} {
		if side == nil {
			continue
		}
		gateway, err := side.startGatewayAs(ctx, as)
		if err != nil {
			stop()
			return nil, nil, err
		}
		running = append(running, gateway)
		arguments = append(arguments, "--gateway", side.target(name, gateway, c))
	}
	return arguments, stop, nil
}

// target describes a gateway for compare.
func (b *bench) target(name string, gateway *process, c comparison) string {
	bearers := b.tokenFile()
	if c.keys {
		bearers = b.keyFile()
	}
	text := fmt.Sprintf("%s,pid=%d,base=%s,mcp=/mcp/bench-call,mcpsse=/mcp/bench-stream,sse=/sse/bench-events-{rate},chat=%s,model=bench-chat,tokens=%s",
		name, gateway.Process.Pid, b.url(), chatPath, bearers)
	if c.tls {
		text += fmt.Sprintf(",mcptls=%[1]s/mcp/bench-call,mcph2=%[1]s/mcp/bench-call", b.tlsURL())
	}
	return text
}

func readSamples(path string) ([]sample, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var samples []sample
	for line := range bytes.Lines(content) {
		var s sample
		if err := json.Unmarshal(line, &s); err != nil {
			return samples, fmt.Errorf("reading a sample: %w", err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// from pairs the gateway's samples with plain Caddy's of the same turn.
func (d *derived) from(samples []sample) measurement { return d.pairs(samples, "durward", "caddy") }

// against pairs the gateway's samples with those of the other one.
func (d *derived) against(samples []sample) measurement { return d.pairs(samples, "durward", "other") }

func (d *derived) pairs(samples []sample, ours, theirs string) (m measurement) {
	of := func(name string) (list []sample) {
		for _, s := range samples {
			if s.Name == name && s.Scenario == d.scenario && (s.Rate > 0) == d.open {
				list = append(list, s)
			}
		}
		return list
	}
	gateway, caddy := of(ours), of(theirs)
	if d.open {
		for _, s := range gateway { // a failure counts, however busy other processes were
			m.failed += s.Bad
		}
		gateway, caddy = undisturbed(gateway, caddy)
	}
	for i := range min(len(gateway), len(caddy)) {
		if d.first && i > 0 {
			break
		}
		m.values = append(m.values, d.value(gateway[i], caddy[i]))
		m.foreign = append(m.foreign, max(gateway[i].Foreign, caddy[i].Foreign))
		if !d.open {
			m.failed += gateway[i].Bad + gateway[i].Failed + gateway[i].Broken
		}
	}
	if d.together && len(m.values) > 0 {
		m.note = fmt.Sprintf("%d slices; the p99 of all their calls together %.0f us, plain Caddy's %.0f us", len(m.values), ninetyNinth(gateway), ninetyNinth(caddy))
		if slices.ContainsFunc(slices.Concat(gateway, caddy), func(s sample) bool { return !s.Awake }) {
			m.note += "; idle processors went to sleep, see docs/performance.md"
		}
	}
	return m
}

// enough is the least number of undisturbed pairs that can stand for all.
const enough = 10

// undisturbed returns the pairs of samples during which other processes left the machine alone. When those are too few
// it returns all pairs, and the figure notes it.
func undisturbed(gateway, caddy []sample) (ours, theirs []sample) {
	for i := range min(len(gateway), len(caddy)) {
		if max(gateway[i].Foreign, caddy[i].Foreign) <= noise {
			ours, theirs = append(ours, gateway[i]), append(theirs, caddy[i])
		}
	}
	if len(ours) < enough {
		return gateway, caddy
	}
	return ours, theirs
}

// ninetyNinth returns the p99 of all the samples' latencies together.
func ninetyNinth(samples []sample) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, s.Latencies...)
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}
