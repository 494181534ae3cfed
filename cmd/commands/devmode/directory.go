package devmode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

const (
	// markerFile says that development mode made the directory. A running instance also holds a lock on it.
	markerFile  = ".durward-dev"
	markerText  = "`durward dev` made this directory and keeps its data here. `durward dev --reset` empties it.\n"
	addressFile = "address"
	// demoFile says that the directory's gateway has demo data.
	demoFile = "demo-data"
	demoText = "`durward dev --demo-data` filled this gateway with made data.\n"
	// SocketFile is the socket of the admin endpoint.
	SocketFile = "admin.sock"
	// caddyFolder is the folder in which Caddy keeps an id of the instance and the stamps of its housekeeping.
	caddyFolder = "caddy"
	// maxSocketPath bounds the address of a unix socket on the strictest of the usual systems, without its final NUL:
	// 104 bytes on macOS and the BSDs, 108 on Linux.
	maxSocketPath = 103
)

// ours lists the files that development mode and the gateway make in the data directory. Any other file belongs to
// somebody else.
var ours = map[string]bool{
	markerFile: true, addressFile: true, demoFile: true, SocketFile: true,
	"durward.db": true, "durward.db-wal": true, "durward.db-shm": true, "durward.db-journal": true,
	"master.key": true, "devidp-identity.json": true, "devidp-grants.json": true, "demo-grants.json": true, "demo.address": true,
}

// oursInCaddyFolder lists the entries that Caddy makes in its folder.
var oursInCaddyFolder = map[string]bool{"instance.uuid": true, "last_clean.json": true, "locks": true}

// digestFolder is the name of a folder in one of oursInFolders.
var digestFolder = regexp.MustCompile(`^[0-9a-f]{16}$`)

// oursInFolders lists the files in the folders of the audit journals, each in a folder of its node, and of the usage
// that is not stored yet, each in a folder of its store.
var oursInFolders = map[string]*regexp.Regexp{
	"audit": regexp.MustCompile(`^(lock|ring|\d{8}\.ndjson.*)$`),
	"usage": regexp.MustCompile(`^([0-9a-zA-Z-]+-\d{19}\.json|\d+\.tmp)$`),
}

// Directory is a data directory, locked by this process until it ends.
type Directory struct {
	path        string
	inCaddyfile string
	marker      *os.File
}

// OpenDirectory makes the directory, or checks that it is one of development mode's, and locks it.
func OpenDirectory(path string) (*Directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--data %q: %w", path, err)
	}
	d := &Directory{path: absolute}
	if d.inCaddyfile, err = pathInCaddyfile(absolute); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return nil, fmt.Errorf("--data %q: %w", path, err)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.marker, err = hold(d.file(markerFile)); err != nil {
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("another `durward dev` is running on %s%s; stop it, or name another directory with --data", absolute, d.runningAt())
		}
		return nil, fmt.Errorf("--data %q: %w", path, err)
	}
	if err := d.mark(); err != nil {
		return nil, errors.Join(fmt.Errorf("--data %q: %w", path, err), d.Close())
	}
	return d, nil
}

// check refuses a directory that has another use.
func (d *Directory) check() error {
	_, err := os.Lstat(d.file(markerFile))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking at the data directory: %w", err)
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("looking at the data directory: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	return fmt.Errorf("--data: %s was not made by development mode and holds %s; name a directory that is empty or does not exist", d.path, some(names(entries)))
}

func names(entries []fs.DirEntry) []string {
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (d *Directory) mark() error {
	info, err := d.marker.Stat()
	if err != nil || info.Size() > 0 {
		return err
	}
	_, err = d.marker.WriteString(markerText)
	return err
}

// Close unlocks the directory, and removes the address.
func (d *Directory) Close() error {
	err := os.Remove(d.file(addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.marker.Close())
}

// Reset deletes everything that development mode made in the directory. When it holds anything else, nothing is deleted.
func (d *Directory) Reset() error {
	foreign, err := d.foreign()
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		return fmt.Errorf("--reset: %s holds %s, which is not development mode's; nothing was deleted. Move that away, or name another directory with --data",
			d.path, some(foreign))
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("--reset: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == markerFile { // it is locked
			continue
		}
		if err := os.RemoveAll(d.file(entry.Name())); err != nil {
			return fmt.Errorf("--reset: %w", err)
		}
	}
	return nil
}

// foreign lists the entries that development mode did not make.
func (d *Directory) foreign() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("looking at the data directory: %w", err)
	}
	var foreign []string
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == caddyFolder && entry.IsDir():
			inside, err := d.foreignIn(caddyFolder, func(e fs.DirEntry) bool {
				return oursInCaddyFolder[e.Name()] && (e.Type().IsRegular() || e.IsDir())
			})
			if err != nil {
				return nil, err
			}
			foreign = append(foreign, inside...)
		case oursInFolders[name] != nil && entry.IsDir():
			inside, err := d.foreignInFolders(name, oursInFolders[name])
			if err != nil {
				return nil, err
			}
			foreign = append(foreign, inside...)
		case !isOurs(name) || (!entry.Type().IsRegular() && !(name == SocketFile && entry.Type()&fs.ModeSocket != 0)):
			foreign = append(foreign, name)
		}
	}
	return foreign, nil
}

// foreignIn lists the unknown entries in a folder of the directory.
func (d *Directory) foreignIn(folder string, known func(fs.DirEntry) bool) ([]string, error) {
	entries, err := os.ReadDir(d.file(folder))
	if err != nil {
		return nil, fmt.Errorf("looking at the data directory: %w", err)
	}
	var foreign []string
	for _, entry := range entries {
		if !known(entry) {
			foreign = append(foreign, filepath.Join(folder, entry.Name()))
		}
	}
	return foreign, nil
}

// foreignInFolders lists the unknown entries in the folders of a folder.
func (d *Directory) foreignInFolders(folder string, known *regexp.Regexp) ([]string, error) {
	var folders []string
	foreign, err := d.foreignIn(folder, func(e fs.DirEntry) bool {
		folders = append(folders, filepath.Join(folder, e.Name()))
		return e.IsDir() && digestFolder.MatchString(e.Name())
	})
	if err != nil || len(foreign) > 0 {
		return foreign, err
	}
	for _, folder := range folders {
		inside, err := d.foreignIn(folder, func(e fs.DirEntry) bool { return e.Type().IsRegular() && known.MatchString(e.Name()) })
		if err != nil {
			return nil, err
		}
		foreign = append(foreign, inside...)
	}
	return foreign, nil
}

// isOurs reports whether a name is one of ours. It also knows the temporary files to which a state file is written
// before it replaces the former one, which a crash may leave behind: .<name>-<digits>.
func isOurs(name string) bool {
	if ours[name] {
		return true
	}
	rest, hidden := strings.CutPrefix(name, ".")
	cut := strings.LastIndexByte(rest, '-')
	return hidden && cut > 0 && ours[rest[:cut]] && cut+1 < len(rest) && strings.Trim(rest[cut+1:], "0123456789") == ""
}

func some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Path returns the directory's absolute path.
func (d *Directory) Path() string { return d.path }

// PathInCaddyfile returns the directory's path as it can stand in a Caddyfile and in the address of a socket:
// absolute, or relative to the working directory when the absolute one is too long or holds characters with another
// meaning there.
func (d *Directory) PathInCaddyfile() string { return d.inCaddyfile }

func pathInCaddyfile(absolute string) (string, error) {
	candidates := []string{absolute}
	if working, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(working, absolute); err == nil {
			candidates = append(candidates, "."+string(filepath.Separator)+relative)
		}
	}
	for _, path := range candidates {
		if len(filepath.Join(path, SocketFile)) <= maxSocketPath && !strings.ContainsFunc(path, isSpecial) {
			return path, nil
		}
	}
	if strings.ContainsFunc(absolute, isSpecial) {
		return "", fmt.Errorf("--data: the path %q has characters that a Caddyfile gives a meaning, such as blanks, quotes and braces; name another one", absolute)
	}
	return "", fmt.Errorf("--data: the path %s is too long by %d bytes: the admin socket is in it, and the system allows its address %d; name a shorter one",
		absolute, len(filepath.Join(absolute, SocketFile))-maxSocketPath, maxSocketPath)
}

func isSpecial(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || strings.ContainsRune("\"`\\{}|#<>*", c)
}

// WriteAddress tells where the gateway listens, whole or not at all. Close takes it back.
func (d *Directory) WriteAddress(address string) error {
	next := d.file("." + addressFile + "-0")
	if err := os.WriteFile(next, []byte(address+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	if err := os.Rename(next, d.file(addressFile)); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	return nil
}

// ForgetAddress removes what an instance that was killed left behind.
func (d *Directory) ForgetAddress() error {
	if err := os.Remove(d.file(addressFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting the former address: %w", err)
	}
	return nil
}

// KeepDemoData notes that the directory's gateway gets demo data. It stays noted until Reset.
func (d *Directory) KeepDemoData() error {
	if err := os.WriteFile(d.file(demoFile), []byte(demoText), 0o600); err != nil {
		return fmt.Errorf("noting that there is demo data: %w", err)
	}
	return nil
}

// HasDemoData reports whether the directory's gateway has demo data.
func (d *Directory) HasDemoData() bool {
	_, err := os.Lstat(d.file(demoFile))
	return err == nil
}

func (d *Directory) runningAt() string {
	address, err := os.ReadFile(d.file(addressFile))
	if err != nil {
		return ""
	}
	return ", at http://" + strings.TrimSpace(string(address))
}

func (d *Directory) file(name string) string { return filepath.Join(d.path, name) }
