// Package diskspace tells how much room file systems have.
package diskspace
