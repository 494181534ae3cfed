package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/ops/access"
	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/modules/app"
)

// examineStart loads the configuration with the code of a start, and reports the same errors.
func examineStart(ctx context.Context, config *gatewayConfig, r *doctor.Report) {
	loaded, err := tryStart(config.text)
	if err != nil {
		r.Add("configuration", refusedStart(err, config.file))
		return
	}
	r.Add("configuration", takenBySites(loaded, config.file)...)
	var findings []doctor.Finding
	running := config.admin != "" && runningAt(config.admin) != nil
	for _, address := range append(sitesOf(loaded), config.admin) {
		err := couldListen(ctx, address)
		if err == nil || running && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		findings = append(findings, refusedStart(err, config.file))
	}
	r.Add("addresses to listen on", findings...)
}

// refusedStart describes the error with which a start would end.
func refusedStart(err error, file string) doctor.Finding {
	mend := advice(err, file)
	if strings.HasPrefix(mend, "`durward doctor") { // the reader has just run it
		mend = "correct the configuration there."
	}
	return doctor.Finding{Severity: doctor.Error, Found: problem(err, file), Mend: strings.ToUpper(mend[:1]) + mend[1:]}
}

// takenBySites returns the sites that take some of the connections to the gateway's.
func takenBySites(loaded caddy.Context, file string) (findings []doctor.Finding) {
	gateway, err := loaded.AppIfConfigured("durward")
	if err != nil {
		return nil // it has been loaded
	}
	for _, taken := range gateway.(*app.App).Taken() {
		findings = append(findings, doctor.Finding{Severity: doctor.Warning, Found: problem(errors.New(taken), file), Mend: "Where a client or a proxy connects to the gateway at that address, give that site another port."})
	}
	return findings
}

// sitesOf returns the addresses on which a loaded configuration's sites listen, those that redirect to https
// included.
func sitesOf(loaded caddy.Context) (addresses []string) {
	sites, err := loaded.AppIfConfigured("http")
	if err != nil {
		return nil // it has none
	}
	for _, server := range sites.(*caddyhttp.App).Servers {
		addresses = append(addresses, server.Listen...)
	}
	return addresses
}

// couldListen returns the reason why a start could not listen on an address of Caddy's.
func couldListen(ctx context.Context, listen string) error {
	address, err := caddy.ParseNetworkAddress(listen)
	switch {
	case listen == "" || err != nil || address.IsFdNetwork():
		return nil // it is inherited, or a start reports its error
	case address.IsUnixNetwork():
		path, _, _ := strings.Cut(address.Host, "|")
		_, err := os.Stat(filepath.Dir(path)) // no start makes it
		if err = cmp.Or(err, access.MakeIn(filepath.Dir(path))); err != nil {
			return fmt.Errorf("listen unix %s: bind: %w", path, errors.Unwrap(err))
		}
		return nil
	}
	for offset := range address.PortRangeSize() {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address.JoinHostPort(offset))
		if err != nil {
			return fmt.Errorf("listening on %s: %w", address.JoinHostPort(offset), err)
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}
