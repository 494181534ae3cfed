package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/process"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// masterKeyFile is the file for the master key that development mode makes.
const masterKeyFile = "master.key"

var errNoMasterKey = errors.New("no master key is configured; make one with `openssl rand -base64 32`, " +
	"keep it in a file or variable, and add `master_key {file./path}` or `master_key {env.NAME}` to the durward option")

// keyrings holds the last keyring that was opened on a store. It is a fallback: a configuration with the same master
// keys can replace another one while the store cannot be reached.
type keyrings struct {
	mu      sync.Mutex
	masters []string // ids
	last    *seal.Keyring
}

// openKeyring unwraps the data keys of the store.
func (r *resources) openKeyring(ctx context.Context, masters []seal.MasterKey) (*seal.Keyring, error) {
	ids := make([]string, len(masters))
	for i, m := range masters {
		ids[i] = m.ID()
	}
	keyring, err := seal.OpenKeyring(ctx, masters, r.store, time.Now)
	kept := &r.keyrings
	kept.mu.Lock()
	defer kept.mu.Unlock()
	switch {
	case err == nil:
		kept.masters, kept.last = ids, keyring
	case kept.last != nil && slices.Equal(kept.masters, ids) && errors.Is(err, storage.ErrUnavailable):
		return kept.last, nil
	default:
		return nil, fmt.Errorf("opening data keys: %w", err)
	}
	return keyring, nil
}

// masterKeys resolves the references to the master keys.
func (a *App) masterKeys() ([]seal.MasterKey, error) {
	if err := process.KeepMemoryPrivate(); err != nil {
		a.logger.Warn("other processes of this user may read the gateway's memory", zap.Error(err))
	}
	if len(a.MasterKey) == 0 {
		if !a.development() {
			return nil, errNoMasterKey
		}
		key, err := developmentMasterKey(a.ownDirectory())
		return []seal.MasterKey{key}, err
	}
	var keys []seal.MasterKey
	for _, reference := range a.MasterKey {
		secret, err := settings.ResolveSecret(reference)
		if err != nil {
			return nil, fmt.Errorf("resolving master_key: %w", err)
		}
		key, err := seal.ParseMasterKey(secret)
		if err != nil {
			return nil, fmt.Errorf("reading master_key %s: %w", reference, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func developmentMasterKey(dir string) (seal.MasterKey, error) {
	if dir == "" {
		return seal.MasterKey{}, errNoMasterKey
	}
	path := filepath.Join(dir, masterKeyFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if directory, trying := process.Trial(); trying {
			path = filepath.Join(directory, masterKeyFile)
		}
		return makeDevelopmentMasterKey(path)
	}
	if err != nil {
		return seal.MasterKey{}, fmt.Errorf("reading the development master key: %w", err)
	}
	key, err := seal.ParseMasterKey(seal.NewSecret(settings.TrimNewline(string(content))))
	if err != nil {
		return seal.MasterKey{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return key, nil
}

// makeDevelopmentMasterKey makes the key under another name first: a process that is killed in between must not leave
// an empty one. Data encrypted under the key is durable at once; the key must be as durable.
func makeDevelopmentMasterKey(path string) (seal.MasterKey, error) {
	secret := seal.NewMasterKey()
	key, err := seal.ParseMasterKey(secret)
	if err == nil {
		err = writeDurably(path, []byte(secret.Reveal()+"\n"))
	}
	if err != nil {
		return seal.MasterKey{}, fmt.Errorf("making the development master key: %w", err)
	}
	return key, nil
}

func writeDurably(path string, content []byte) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

func (a *App) dataDirectory() string {
	own := a.ownDirectory()
	if directory, trying := process.Trial(); trying && own != "" {
		return directory
	}
	return own
}

// ownDirectory returns the dataDirectory of a configuration that serves.
func (a *App) ownDirectory() string {
	if local, ok := a.store.(DataDirectory); ok {
		return local.DataDirectory()
	}
	return ""
}
