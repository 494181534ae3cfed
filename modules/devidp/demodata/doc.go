// Package demodata fills an organization of development mode with a month of made traffic, so that every screen of the console
// has something to show. The gateway's own parts decide, count and record it, as of a clock that runs through the month: the
// engine of policies, approvals, the books of models, the audit log. All of it is marked as demo data.
package demodata
