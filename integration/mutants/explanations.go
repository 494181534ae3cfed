package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// explanations holds why changes may survive. A line of the file is a change's name, " -- " and the reason.
type explanations map[string]*explanation

type explanation struct {
	reason string
	used   bool
}

// readExplanations reads a file of explanations. Lines that begin with # are comments. No path gives none.
func readExplanations(path string) (explanations, error) {
	reasons := explanations{}
	if path == "" {
		return reasons, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " -- ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: no reason: a line is `path function: change -- reason`", path, number)
		}
		if reasons[name] != nil {
			return nil, fmt.Errorf("%s:%d: the change is explained above already", path, number)
		}
		reasons[name] = &explanation{reason: reason}
	}
	return reasons, lines.Err()
}

// take reports whether a survivor is explained.
func (e explanations) take(name string) bool {
	found := e[name]
	if found == nil {
		return false
	}
	found.used = true
	return true
}

// unused returns the explanations of a package that no survivor took, in order.
func (e explanations) unused(packagePath string) []string {
	var names []string
	for name, each := range e {
		file, _, _ := strings.Cut(name, " ")
		if each.used || file[:max(strings.LastIndex(file, "/"), 0)] != packagePath {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
