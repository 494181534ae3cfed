// Command mutants changes the code of packages, one small change at a time, and says which changes no test of the package
// notices. Each of those is a promise without a test, or it changes nothing that anybody could see. The second kind is
// explained, a line each, in survivors.txt.
//
//	mutants [-explained FILE] [-at TEXT] PACKAGE[,PACKAGE]...
//
// All changes of a package are compiled into one test binary, each behind a number. A first run of each test finds which
// changes it reaches. Then each change is switched on by itself, and the tests that reach it run until one fails. Packages
// with a comma between them are tried together: the tests of each count for all of them.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	explained := flag.String("explained", "", "the file of explanations; its lines are `path function: change -- reason`")
	at := flag.String("at", "", "try only changes whose line of the report contains this `text`")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	whole := *at == ""
	left, err := run(flag.Args(), *explained, *at, whole)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if left > 0 {
		os.Exit(1)
	}
}

// run tries the changes of each package. It returns how many survivors have no explanation, and, where all changes are
// tried, how many explanations have no survivor.
func run(packages []string, explained, at string, whole bool) (int, error) {
	reasons, err := readExplanations(explained)
	if err != nil {
		return 0, err
	}
	left := 0
	for _, path := range packages {
		var folders []string
		for folder := range strings.SplitSeq(path, ",") {
			folders = append(folders, strings.TrimPrefix(strings.TrimSuffix(folder, "/"), "./"))
		}
		began := time.Now()
		survivors, hanging := 0, 0
		count, err := try(folders, at, func(change *change) {
			switch change.outcome {
			case survived, unreached:
				survivors++
				if reasons.take(change.name()) {
					return
				}
				left++
				fmt.Printf("SURVIVES %s (line %d, %s)\n", change.name(), change.line, change.outcome)
			case hung:
				hanging++
				fmt.Printf("hangs    %s (line %d)\n", change.name(), change.line)
			}
		})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if whole {
			for _, folder := range folders {
				for _, name := range reasons.unused(folder) {
					left++
					fmt.Printf("EXPLAINED, but it does not survive: %s\n", name)
				}
			}
		}
		fmt.Printf("%s: %d changes, %d survive, %d hang until the time-out, %s\n",
			path, count, survivors, hanging, time.Since(began).Round(time.Second))
	}
	return left, nil
}
