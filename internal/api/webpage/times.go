package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the script
	"encoding/hex"
	"net/http"
	"time"
)

var (
	//go:embed times.js
	timesScript []byte
	timesTag    = func() string {
		sum := sha256.Sum256(timesScript)
		return `"` + hex.EncodeToString(sum[:8]) + `"`
	}()
)

// Times has the page's <time> elements shown in the reader's time zone. This is done by the script that [WriteTimes]
// serves at that address of the same site. It is the only script that pages have: inline ones stay forbidden.
func (t *Template) Times(address string) *Template {
	t.script = address
	return t
}

// WriteTimes answers with the script for times. A browser may keep it, and asks each time whether it has changed.
func WriteTimes(w http.ResponseWriter, r *http.Request) {
	Secure(w.Header())
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Etag", timesTag)
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(timesScript))
}
