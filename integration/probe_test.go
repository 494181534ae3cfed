package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// probed is the environment's variable that has this program ask for health and do nothing else.
const probed = "DURWARD_TEST_PROBE"

// probes is the number of requests for health.
const probes = 20

// probe returns how long health took each time, each on a connection of its own as load balancers ask. A process of its own
// asks: what loads a gateway keeps the test's goroutines waiting for each other too.
func (g *gateway) probe() (took []time.Duration) {
	g.t.Helper()
	command := exec.CommandContext(g.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), probed+"="+g.url+"/healthz")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err == nil {
		err = json.Unmarshal(output, &took)
	}
	if err != nil || len(took) != probes {
		g.t.Fatalf("asking for health: %v %s", err, output)
	}
	return took
}

// probeFor is the other side of probe.
func probeFor(url string) error {
	client := http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	took := make([]time.Duration, 0, probes)
	for range probes {
		asked := time.Now()
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("health is %s", response.Status)
		}
		took = append(took, time.Since(asked))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}
