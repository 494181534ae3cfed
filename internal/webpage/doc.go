// Package webpage makes the few pages that people see in a browser: plain HTML, under a policy that lets
// the browser do nothing but show them and send their forms back here. Whatever comes from elsewhere is escaped by
// html/template, and what people are to judge is made visible first: internal/visible, and JSON. One script puts times into
// the reader's zone, on pages that have times. Every page works without it.
package webpage
