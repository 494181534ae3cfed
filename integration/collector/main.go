// Command collector receives traces like an OpenTelemetry collector, with the collector's own receiver, and prints every
// request that it gets as one line of JSON (OTLP). It ends with SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	overGRPC := flag.String("grpc", "", "address for OTLP over gRPC")
	overHTTP := flag.String("http", "", "address for OTLP over HTTP")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *overGRPC, *overHTTP, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// run receives until ctx ends.
func run(ctx context.Context, overGRPC, overHTTP string, out io.Writer) error {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	protocols := map[string]any{"grpc": map[string]any{"endpoint": overGRPC}, "http": map[string]any{"endpoint": overHTTP}}
	if err := confmap.NewFromStringMap(map[string]any{"protocols": protocols}).Unmarshal(config); err != nil {
		return err
	}
	var one sync.Mutex
	lines, err := consumer.NewTraces(func(_ context.Context, got ptrace.Traces) error {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(got)
		if err != nil {
			return err
		}
		one.Lock()
		defer one.Unlock()
		_, err = out.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	receiver, err := factory.CreateTraces(ctx, receivertest.NewNopSettings(factory.Type()), config, lines)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "ready\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return receiver.Shutdown(context.WithoutCancel(ctx))
}
