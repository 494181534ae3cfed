package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// room is the factor by which tests may run longer than without the change, and shortest is their least limit.
	room     = 10
	shortest = 20 * time.Second
	// quick are tests that take less of the processor's time.
	quick = 300 * time.Millisecond
	// narrowest is the number of tests that run before the others: those that reach the fewest changes.
	narrowest = 3
	// progress is the number of changes after which the terminal shows how many are done.
	progress = 50
	// addresses are the KiB of memory that a test may ask for. A loop that lost its end asks for all that the machine has.
	addresses = "8388608"
	// reachLimit is the longest that one test of an unchanged package may run.
	reachLimit = 10 * time.Minute
)

// subject holds packages that are tried together, with all their changes in them.
type subject struct {
	packages []source
	changes  []*change
	scratch  string
	copies   map[string]string // paths below scratch, by the path of the file that is changed there
}

// source is one of the packages.
type source struct {
	folder string // relative to the repository
	name   string
	files  map[string][]byte // by path, relative to the repository
	binary string            // of its tests; "" when it has none
}

// test is one test of a package.
type test struct {
	of      *source
	name    string
	took    time.Duration
	worked  time.Duration // on the processor
	reaches map[int]bool
}

// try switches each change of some packages on by itself. It calls report with each one, after the tests, from one goroutine
// at a time, and returns their number.
func try(folders []string, at string, report func(*change)) (int, error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	s := &subject{scratch: scratch, copies: map[string]string{}}
	if err := s.read(folders); err != nil {
		return 0, err
	}
	if err := s.compile(); err != nil {
		return 0, err
	}
	tests, err := s.reach()
	if err != nil {
		return 0, err
	}
	changes := slices.DeleteFunc(slices.Clone(s.changes), func(c *change) bool { return !strings.Contains(c.name(), at) })
	var reporting sync.Mutex
	done := 0
	inParallel(len(changes), func(i int) {
		s.switchOn(changes[i], tests)
		reporting.Lock()
		defer reporting.Unlock()
		report(changes[i])
		if done++; done%progress == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d of %d changes\n", strings.Join(folders, ","), done, len(changes))
		}
	})
	return len(changes), nil
}

// read finds the changes of the files that are compiled here.
func (s *subject) read(folders []string) error {
	number := 0
	for i, folder := range folders {
		found, err := build.Default.ImportDir(folder, 0)
		if err != nil {
			return err
		}
		p := source{folder: folder, name: found.Name, files: map[string][]byte{}}
		if len(found.TestGoFiles)+len(found.XTestGoFiles) > 0 {
			p.binary = filepath.Join(s.scratch, fmt.Sprintf("tests%d", i))
		}
		for _, file := range found.GoFiles {
			path := filepath.Join(folder, file)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			changes, err := findChanges(path, text, &number)
			if err != nil {
				return err
			}
			p.files[path] = text
			s.changes = append(s.changes, changes...)
		}
		s.packages = append(s.packages, p)
	}
	return nil
}

var compilerLine = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// compile builds the tests with all changes. Changes on lines that the compiler refuses are given up: constants, for one.
func (s *subject) compile() error {
	for range 20 {
		output, err := s.build()
		if err == nil {
			return nil
		}
		before := len(s.changes)
		for _, found := range compilerLine.FindAllStringSubmatch(output, -1) {
			line, _ := strconv.Atoi(found[2])
			s.changes = slices.DeleteFunc(s.changes, func(c *change) bool {
				return strings.HasSuffix(found[1], s.copies[c.file]) && c.covers(line)
			})
		}
		if len(s.changes) == before {
			return fmt.Errorf("compiling the tests: %w\n%s", err, output)
		}
	}
	return errors.New("compiling the tests: the compiler refuses new lines again and again")
}

// covers reports whether a change begins at a line.
func (c *change) covers(line int) bool { return c.line == line }

func (s *subject) build() (string, error) {
	replace := map[string]string{}
	for i, p := range s.packages {
		for path, text := range p.files {
			var own []*change
			for _, c := range s.changes {
				if c.file == path {
					own = append(own, c)
				}
			}
			if err := s.replace(replace, i, path, changed(text, own)); err != nil {
				return "", err
			}
		}
		if err := s.replace(replace, i, filepath.Join(p.folder, "mutant_switches.go"), switches(p.name)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(s.scratch, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return "", err
	}
	for _, p := range s.packages {
		if p.binary == "" {
			continue
		}
		// -e: all errors, not the first ten. Vet would refuse some changes.
		output, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", list, "-o", p.binary, "./"+p.folder).CombinedOutput()
		if err != nil {
			return string(output), err
		}
	}
	return "", nil
}

// replace has the compiler read another text for a file of a package. Packages can have files of the same name.
func (s *subject) replace(all map[string]string, number int, path string, text []byte) error {
	s.copies[path] = filepath.Join("/changed", strconv.Itoa(number), filepath.Base(path))
	to := filepath.Join(s.scratch, s.copies[path])
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return err
	}
	from, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	all[from] = to
	return nil
}

// reach runs each test by itself, without a change, and finds which changes it reaches.
func (s *subject) reach() ([]*test, error) {
	var tests []*test
	for i := range s.packages {
		p := &s.packages[i]
		if p.binary == "" {
			continue
		}
		output, err := s.command(context.Background(), p, "-test.list", ".").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the tests: %w", err)
		}
		for _, name := range strings.Fields(string(output)) {
			if !strings.HasPrefix(name, "Benchmark") {
				tests = append(tests, &test{of: p, name: name})
			}
		}
	}
	failures := make([]error, len(tests))
	inParallel(len(tests), func(i int) { failures[i] = s.reachOne(tests[i]) })
	return tests, errors.Join(failures...)
}

func (s *subject) reachOne(t *test) error {
	ctx, cancel := context.WithTimeout(context.Background(), reachLimit)
	defer cancel()
	list := filepath.Join(s.scratch, "reached-"+t.of.name+"-"+t.name)
	command := s.command(ctx, t.of, "-test.run", "^"+t.name+"$")
	command.Env = append(command.Env, "DURWARD_MUTANT_REACHED="+list)
	began := time.Now()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s fails without a change: %w\n%s", t.name, err, output)
	}
	t.took = time.Since(began)
	t.worked = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	text, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	t.reaches = map[int]bool{}
	for number := range bytes.FieldsSeq(text) {
		reached, err := strconv.Atoi(string(number))
		if err != nil {
			return err
		}
		t.reaches[reached] = true
	}
	return nil
}

// switchOn runs the tests that reach a change, with the change: the narrowest first, then the other quick ones, for one of
// those notices nearly every change.
func (s *subject) switchOn(c *change, tests []*test) {
	var quickOnes, later []*test
	for _, t := range tests {
		switch {
		case !t.reaches[c.number]:
		case t.worked < quick:
			quickOnes = append(quickOnes, t)
		default:
			later = append(later, t)
		}
	}
	slices.SortStableFunc(quickOnes, func(a, b *test) int { return len(a.reaches) - len(b.reaches) })
	first := quickOnes[:min(narrowest, len(quickOnes))]
	c.outcome = unreached
	for _, some := range [][]*test{first, quickOnes[len(first):], later} {
		for i := range s.packages {
			own := slices.DeleteFunc(slices.Clone(some), func(t *test) bool { return t.of != &s.packages[i] })
			if len(own) == 0 {
				continue
			}
			if c.outcome = s.outcomeOf(c, own); c.outcome != survived {
				return
			}
		}
	}
}

// outcomeOf runs some tests of a package with a change.
func (s *subject) outcomeOf(c *change, tests []*test) outcome {
	var names []string
	var took time.Duration
	for _, t := range tests {
		names = append(names, t.name)
		took += t.took
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(shortest, room*took))
	defer cancel()
	command := s.command(ctx, tests[0].of, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	command.Env = append(command.Env, "DURWARD_MUTANT="+strconv.Itoa(c.number))
	err := command.Run()
	switch {
	case err == nil:
		return survived
	case ctx.Err() != nil:
		return hung
	}
	return noticed
}

// command runs the tests' binary of a package where the package lies. What it started is given up with it, and the files of
// tests that were stopped are removed with the scratch folder. Tests with random steps take the same steps in each run, so
// that a change survives always or never, and look for no shorter steps when they fail.
func (s *subject) command(ctx context.Context, p *source, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v ` + addresses + `; exec "$0" "$@"`, p.binary}, arguments...)...)
	command.Dir = p.folder
	command.Env = append(os.Environ(), "TMPDIR="+s.scratch, "GOMEMLIMIT=2GiB", "RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=1")
	command.WaitDelay = time.Second
	return command
}

// inParallel calls work with each number below count, on as many goroutines as there are processors.
func inParallel(count int, work func(int)) {
	numbers := make(chan int)
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for number := range numbers {
				work(number)
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	working.Wait()
}
