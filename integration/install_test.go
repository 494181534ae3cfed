package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// installTimeout bounds the installation of tools from the npm registry.
const installTimeout = 10 * time.Minute

var installing sync.Mutex

// install runs a command that installs tools into a directory, unless it did so before with the same recipe: the files
// that say what is installed.
func install(directory string, recipe []string, command func(context.Context) *exec.Cmd) error {
	installing.Lock()
	defer installing.Unlock()
	want, err := digest(recipe)
	if err != nil {
		return err
	}
	marker := filepath.Join(directory, "installed")
	if have, err := os.ReadFile(marker); err == nil && string(have) == want {
		return nil
	}
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	if output, err := command(ctx).CombinedOutput(); err != nil {
		return fmt.Errorf("installing what %v name: %w\n%s", recipe, err, tail(string(output), 5_000))
	}
	return os.WriteFile(marker, []byte(want), 0o644)
}

func digest(files []string) (string, error) {
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading what is to be installed: %w", err)
		}
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
