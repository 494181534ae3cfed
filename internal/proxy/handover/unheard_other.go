//go:build !linux

package handover

import (
	"net"
	"time"
)

// Unheard does nothing here: the system decides when a connection is lost.
func Unheard(net.Conn, time.Duration) {}
