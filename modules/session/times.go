package session

import (
	"net/url"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// moment is a time in the form of a page.
type moment struct{ ISO, Text string }

func (v *visit) moment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.Truncate(time.Second)
	return moment{ISO: t.UTC().Format(time.RFC3339), Text: t.In(v.zone()).Format("2 January 2006, 15:04:05 MST")}
}

// zone returns the reader's time zone, as far as it is known without the page's script: the identity provider's
// (zoneinfo, OpenID Connect Core section 5.1), this machine's when the gateway is on the reader's own machine,
// otherwise UTC.
func (v *visit) zone() *time.Location {
	if v.user != nil && v.user.Zone != "" {
		if zone, err := time.LoadLocation(v.user.Zone); err == nil {
			return zone
		}
	}
	if u, err := url.Parse(v.core.PublicURL); err == nil && loopback.IsHost(u.Host) {
		return time.Local
	}
	return time.UTC
}

// maxZone is the limit for the name of a time zone, in bytes: the longest known one has 32 bytes.
const maxZone = 64

// knownZone returns the name of a time zone if it is one, else "". Local is refused: it is not the reader's zone.
func knownZone(name string) string {
	if name == "Local" || len(name) > maxZone {
		return ""
	}
	if _, err := time.LoadLocation(name); err != nil {
		return ""
	}
	return name
}

// span returns a length of time in words. It never rounds up: a reader with less than a minute left is told so.
func span(d time.Duration) string {
	switch minutes := int(d / time.Minute); {
	case minutes < 1:
		return "less than a minute"
	case minutes == 1:
		return "1 minute"
	case minutes < 120:
		return strconv.Itoa(minutes) + " minutes"
	case minutes < 48*60:
		return strconv.Itoa(minutes/60) + " hours"
	default:
		return strconv.Itoa(minutes/(24*60)) + " days"
	}
}
