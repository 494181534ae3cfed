package doctor

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// File describes a file or directory that no other user may read.
type File struct {
	Path string
	Mode fs.FileMode
	// What names its contents, for the report.
	What string
	// Given says that it belongs to another user, who lets this one read it through its group, as orchestrators do.
	// Fixed says that its file system is mounted read-only here, so that its mode cannot be changed here.
	Given, Fixed bool
}

// Private checks who may read the files.
func Private(files ...File) (findings []Finding) {
	for _, f := range files {
		others := fs.FileMode(0o077)
		if f.Given || f.Fixed {
			others = 0o037
		}
		if open := f.Mode.Perm() & others; open != 0 {
			if f.Fixed {
				findings = append(findings, Finding{
					Severity: Note, Found: fmt.Sprintf("%s (%s) has mode %04o, on a file system that is read-only here", f.Path, f.What, f.Mode.Perm()),
					Mend: "Where it is mounted from, nobody else may get at it: keep it in a directory of mode 0700 there.",
				})
				continue
			}
			chmod := "600"
			if f.Mode.IsDir() {
				chmod = "700"
			}
			findings = append(findings, Finding{
				Severity: Warning, Found: fmt.Sprintf("%s (%s) has mode %04o: other users of this machine can get at it", f.Path, f.What, f.Mode.Perm()),
				Mend: "chmod " + chmod + " " + f.Path,
			})
		}
	}
	return findings
}

// MasterKey holds a reference to a master key, and the result of reading it.
type MasterKey struct {
	Reference string
	ID        string
	Err       error
}

// MasterKeys checks the master keys of a configuration, the first of which encrypts, against the keys that wrap the
// store's data keys. wrapping is nil when the store could not be read.
func MasterKeys(given []MasterKey, wrapping []string) (findings []Finding) {
	if len(given) == 0 {
		return []Finding{{
			Severity: Error, Found: "no master key is configured: the gateway does not start",
			Mend: "Make one with `openssl rand -base64 32`, keep it in a file or variable, and add `master_key {file./path}` or `master_key {env.NAME}`.",
		}}
	}
	known, used := make(map[string]bool), make(map[string]bool)
	for _, k := range given {
		if k.Err != nil {
			found := k.Err.Error()
			if !strings.Contains(found, k.Reference) {
				found = k.Reference + ": " + found
			}
			mend := "Put the key where the configuration says. Without it nothing that is stored can be opened: restore it from where you keep it apart from the database."
			if len(wrapping) == 0 { // nothing is stored
				mend = "If there is none yet, make one with `openssl rand -base64 32`. Put it where the configuration says, readable for the gateway's user alone, and run this as that user."
			}
			findings = append(findings, Finding{Severity: Error, Found: found, Mend: mend})
		}
		if k.Err == nil && known[k.ID] {
			findings = append(findings, Finding{Severity: Note, Found: k.Reference + " is the same key as another one", Mend: "Name each key once."})
		}
		known[k.ID] = k.Err == nil
	}
	for _, id := range wrapping {
		if used[id] {
			continue
		}
		used[id] = true
		switch {
		case !known[id]:
			findings = append(findings, Finding{Severity: Error, Found: "the store's data keys are wrapped by master key " + id + ", which is not configured: the gateway does not start",
				Mend: "Add that key to master_key. When it is lost, so is every credential in the store: users have to connect their accounts anew, with an empty store."})
		case given[0].Err == nil && id != given[0].ID:
			findings = append(findings, Finding{Severity: Note, Found: "data keys are still wrapped by master key " + id + ", not by the first one that is configured",
				Mend: "Run `durward rekey`, then take the former key out of master_key."})
		}
	}
	if len(wrapping) == 0 {
		return findings
	}
	for _, k := range given {
		if k.Err == nil && !used[k.ID] && k.ID != given[0].ID {
			findings = append(findings, Finding{Severity: Note, Found: k.Reference + " wraps nothing any more", Mend: "Take it out of master_key on every node, and destroy it."})
		}
	}
	return findings
}

// Bounds of the free disk space, in bytes and in shares of the disk.
const (
	diskError, diskWarning = 128 << 20, 1 << 30
	shareError, shareWarn  = 0.01, 0.10
)

// Disk checks the space that is left in a directory's file system. An unknown size is 0.
func Disk(path string, free, size uint64) []Finding {
	if size == 0 {
		return nil
	}
	share := float64(free) / float64(size)
	f := Finding{
		Found: fmt.Sprintf("%d MiB (%.0f %%) are free where %s is: when nothing is left, calls that cannot be recorded are refused", free>>20, share*100, path),
		Mend:  "Make room, or move the data directory to a larger disk.",
	}
	switch {
	case free < diskError || free < diskWarning && share < shareError:
		f.Severity = Error
	case free < diskWarning && share < shareWarn:
		f.Severity = Warning
	default:
		return nil
	}
	return []Finding{f}
}

// Bounds of the backlog, in bytes.
const (
	backlogWarning = 64 << 20
	backlogError   = 1 << 30
)

// Backlog checks the finished audit journals of a node that are not in the store yet.
func Backlog(path string, segments int, bytes int64) []Finding {
	if bytes < backlogWarning {
		return nil
	}
	f := Finding{
		Severity: Warning, Found: fmt.Sprintf("%d segments of audit journals (%d MiB) in %s are not in the store yet: they are lost with this machine's disk", segments, bytes>>20, path),
		Mend: "Look in the gateway's log for what keeps it from shipping them, and whether a gateway runs here at all.",
	}
	if bytes >= backlogError {
		f.Severity = Error
	}
	return []Finding{f}
}

// Issuer holds the facts about an identity provider.
type Issuer struct {
	Name string
	// Err says why its metadata or its keys could not be read. Advice names the option that lets the gateway read
	// them; "" for none.
	Err    error
	Advice string
	// Says is the issuer that its metadata names. Keys is the number of keys that it publishes.
	Says string
	Keys int
	// Date is the time of its clock, zero when unknown. It was read at At, after a round trip that took Trip.
	Date, At time.Time
	Trip     time.Duration
}

// Identity checks an identity provider, which the report's check names.
func Identity(i Issuer) (findings []Finding) {
	switch {
	case i.Err != nil:
		mend := "Check the issuer's address, this machine's DNS and firewall, and the certificates that it trusts."
		if i.Advice != "" {
			mend = strings.ToUpper(i.Advice[:1]) + i.Advice[1:] + "."
		}
		return []Finding{{Severity: Error, Found: fmt.Sprintf("%v: a gateway that starts refuses its tokens with 503, one that runs does so once the keys that it knows are an hour old", i.Err),
			Mend: mend}}
	case i.Says != i.Name:
		findings = append(findings, Finding{Severity: Error, Found: fmt.Sprintf("it calls itself %q: its tokens are refused", i.Says),
			Mend: "Configure the issuer exactly as it calls itself, a slash at the end included."})
	case i.Keys == 0:
		findings = append(findings, Finding{Severity: Error, Found: "it publishes no keys: no token can be checked", Mend: "Make a signing key at the identity provider."})
	}
	if !i.Date.IsZero() {
		findings = append(findings, Clock(i.Name, i.Date, i.At, i.Trip, time.Second)...)
	}
	return findings
}
