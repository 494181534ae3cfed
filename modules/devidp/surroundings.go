package devidp

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/devidp/demo"
	"github.com/durward-gateway/durward/modules/devidp/idp"
	"github.com/durward-gateway/durward/modules/devidp/models"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
)

// demoAddressFile keeps the address of the demo third party, chosen once: connections to it stay valid after a restart.
const demoAddressFile = "demo.address"

// pool shares one provider and one demo third party among the configurations of a process.
var pool = caddy.NewUsagePool()

// surroundings holds the running providers.
type surroundings struct {
	provider *idp.Provider
	handler  http.Handler // of the gateway's site: the provider, and a page that lists the running services
	demo     *demo.Demo
	demoURL  string
	server   *http.Server
}

// held is a reference to the pool's value.
type held struct {
	*surroundings
	key string
}

func acquire(b app.Binding) (*held, error) {
	key := b.DataDirectory + " " + b.PublicURL
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) { return open(b) })
	if err != nil {
		return nil, err
	}
	return &held{surroundings: value.(*surroundings), key: key}, nil
}

func (h *held) release() error {
	_, err := pool.Delete(h.key)
	return err
}

func open(b app.Binding) (*surroundings, error) {
	provider, err := idp.Open(idp.Options{
		Dir: b.DataDirectory, Issuer: b.PublicURL + issuerPath, RedirectURI: b.PublicURL + paths.LoginCallback, Audiences: []string{b.PublicURL},
		Now: b.Now,
	})
	if err != nil {
		return nil, err
	}
	listener, err := listen(filepath.Join(b.DataDirectory, demoAddressFile))
	if err != nil {
		return nil, err
	}
	s := &surroundings{provider: provider, handler: site(provider, welcome.New(b.PublicURL, b.DataDirectory)), demoURL: "http://" + listener.Addr().String()}
	if s.demo, err = demo.Open(demo.Options{Dir: b.DataDirectory, BaseURL: s.demoURL, Now: b.Now}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	served := http.NewServeMux()
	served.Handle(modelsPath+"/", loopback.Guard(http.StripPrefix(modelsPath, models.Handler(models.Options{Pause: streamPause, Now: b.Now}))))
	served.Handle("/", s.demo.Handler())
	s.server = &http.Server{Handler: served, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // ends with Destruct
	return s, nil
}

// site serves the page at / and passes all other requests to the provider.
func site(provider, page http.Handler) http.Handler {
	page = loopback.Guard(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == welcomePath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			page.ServeHTTP(w, r)
			return
		}
		provider.ServeHTTP(w, r)
	})
}

// listen opens the address that the file keeps, or chooses one and keeps it.
func listen(file string) (net.Listener, error) {
	var config net.ListenConfig
	kept, err := os.ReadFile(file)
	switch {
	case err == nil:
		address := strings.TrimSpace(string(kept))
		listener, err := config.Listen(context.Background(), "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("the demo third party's address %s is taken; stop what uses it, or delete %s to choose another one "+
				"(accounts connected to it must then be connected anew): %w", address, file, err)
		}
		return listener, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the demo third party's address: %w", err)
	}
	listener, err := loopback.Listen(context.Background())
	if err != nil {
		return nil, fmt.Errorf("listening for the demo third party: %w", err)
	}
	if err := os.WriteFile(file, []byte(listener.Addr().String()+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keeping the demo third party's address: %w", err), listener.Close())
	}
	return listener, nil
}

// Destruct implements caddy.Destructor.
func (s *surroundings) Destruct() error {
	return errors.Join(s.demo.Close(), s.server.Close())
}

func staticKeys(keys map[string]crypto.PublicKey) (*token.StaticKeys, error) {
	var list []token.StaticKey
	for kid, key := range keys {
		list = append(list, token.StaticKey{ID: kid, Algorithm: "RS256", Public: key})
	}
	return token.NewStaticKeys(list...)
}
