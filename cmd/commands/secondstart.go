package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/modules/app/adminapi"
)

// askTimeout bounds how long a start waits for the answer of a running gateway. maxProcess bounds that answer.
const (
	askTimeout = 3 * time.Second
	maxProcess = 1 << 10
)

// refuseSecondStart makes `run` fail when a gateway of the same configuration runs: Caddy would take its admin
// endpoint away, and share its ports. A gateway that is about to exit does not count, so that its successor can serve
// meanwhile.
func refuseSecondStart(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, arguments []string) error {
		file, adapter := flagValue(cmd, "config"), flagValue(cmd, "adapter")
		if about, err := os.Stat(file); file != "" && (err != nil || !about.Mode().IsRegular()) {
			return run(cmd, arguments) // standard input, a pipe: reading it here would consume it
		}
		text, err := loadQuietly(file, adapter)
		if err != nil || len(text) == 0 || flagValue(cmd, "resume") == "true" {
			return run(cmd, arguments) // which reports the error
		}
		if address := adminOf(text, file, adapter); address != "" {
			if running := runningAt(address); running != nil {
				return &secondStart{address: address, pid: running.PID}
			}
		}
		return run(cmd, arguments)
	}
}

func flagValue(cmd *cobra.Command, name string) string {
	if flag := cmd.Flags().Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

// secondStart is the error of a start where a gateway runs already.
type secondStart struct {
	address string
	pid     int // 0: something else than this durward
}

func (e *secondStart) Error() string {
	if e.pid == 0 {
		return "something else answers on the admin endpoint " + e.address
	}
	return fmt.Sprintf("the gateway is running already: process %d answers on the admin endpoint %s", e.pid, e.address)
}

// adminOf returns the address of a configuration's admin endpoint; "" when there is none.
func adminOf(text []byte, file, adapter string) string {
	var config struct {
		Admin *struct {
			Disabled bool `json:"disabled"`
		} `json:"admin"`
	}
	if json.Unmarshal(text, &config) != nil || config.Admin != nil && config.Admin.Disabled {
		return ""
	}
	address, err := caddycmd.DetermineAdminAPIAddress("", text, file, adapter)
	if err != nil {
		return ""
	}
	return address
}

// runningAt asks an admin endpoint which process serves there: nil means none, or a gateway that is about to exit.
func runningAt(address string) *adminapi.Process {
	asked := make(chan *adminapi.Process, 1)
	go func() { asked <- askProcess(address) }()
	select {
	case info := <-asked:
		return info
	case <-time.After(askTimeout):
		return new(adminapi.Process) // something holds the connection
	}
}

func askProcess(address string) *adminapi.Process {
	response, err := caddycmd.AdminAPIRequest(address, http.MethodGet, adminapi.ProcessPath, nil, nil)
	if err != nil {
		if strings.Contains(err.Error(), ": dial ") {
			return nil // Caddy's error has only a text
		}
		return new(adminapi.Process)
	}
	defer response.Body.Close()
	var info adminapi.Process
	if err := json.NewDecoder(io.LimitReader(response.Body, maxProcess)).Decode(&info); err != nil {
		return new(adminapi.Process)
	}
	if info.Exiting {
		return nil
	}
	return &info
}
