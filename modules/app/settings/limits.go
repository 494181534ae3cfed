package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
)

// LimitRules holds the rules by which nodes that share counters count rate limits.
type LimitRules struct {
	// The behaviour of a node while the counters that nodes share cannot be reached: `local` holds it to the limit divided
	// by the number of nodes, `closed` refuses limited calls with 503, `open` holds it to the whole limit. Default:
	// `local`.
	OnStoreFailure string `json:"on_store_failure,omitempty"`
	// `exact` asks the shared counters for every call; `share` lets nodes take small leases; at most 5 % too much gets
	// through. Default: `exact`.
	Mode string `json:"mode,omitempty"`
	// The number of nodes. A node uses it until it has reached the shared counters for the first time: with `local` it
	// holds the limit divided by this. Default: 1, so that a node that starts while the counters are away holds whole
	// limits.
	Nodes int64 `json:"nodes,omitempty"`
}

// mostNodes bounds Nodes.
const mostNodes = 1000

var (
	limitFailures = []string{string(cluster.Local), string(cluster.Closed), string(cluster.Open)}
	limitModes    = []string{string(cluster.Exact), string(cluster.Share)}
)

// Set sets an option of the Caddyfile.
func (r *LimitRules) Set(word, value string) error {
	var field *string
	var known []string
	switch word {
	case "nodes":
		if r.Nodes != 0 {
			return fmt.Errorf("%s may be given once", word)
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > mostNodes {
			return fmt.Errorf("nodes takes a number from 1 to %d", mostNodes)
		}
		r.Nodes = n
		return nil
	case "on_store_failure":
		field, known = &r.OnStoreFailure, limitFailures
	case "mode":
		field, known = &r.Mode, limitModes
	default:
		return fmt.Errorf("unrecognized word %q in limits; known are mode, nodes, on_store_failure", word)
	}
	if *field != "" {
		return fmt.Errorf("%s may be given once", word)
	}
	if !slices.Contains(known, value) {
		return fmt.Errorf("%s takes one of %s", word, strings.Join(known, ", "))
	}
	*field = value
	return nil
}

// Check refuses values that Set would refuse. r may be nil.
func (r *LimitRules) Check() error {
	if r == nil {
		return nil
	}
	if r.OnStoreFailure != "" && !slices.Contains(limitFailures, r.OnStoreFailure) {
		return fmt.Errorf("limits: on_store_failure takes one of %s", strings.Join(limitFailures, ", "))
	}
	if r.Nodes < 0 || r.Nodes > mostNodes {
		return fmt.Errorf("limits: nodes takes a number from 1 to %d", mostNodes)
	}
	if r.Mode != "" && !slices.Contains(limitModes, r.Mode) {
		return fmt.Errorf("limits: mode takes one of %s", strings.Join(limitModes, ", "))
	}
	return nil
}
