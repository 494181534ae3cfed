// Package webpage makes the few pages that people see in a browser: plain HTML, under a policy that lets the browser
// only show them and send their forms back here. Text from elsewhere is escaped by html/template. Text on which
// people decide is made visible first: by internal/api/visible, and by JSON. One script converts times into the reader's
// zone, on pages that have times. Every page works without it.
package webpage
