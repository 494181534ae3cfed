package house

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one line of a Dockerfile, continuations joined.
type instruction struct{ word, args string }

func TestDockerfile(t *testing.T) {
	dockerfile, goMod := read(t, "../../Dockerfile"), read(t, "../../go.mod")
	for _, problem := range dockerfileProblems(dockerfile, goMod) {
		t.Error(problem)
	}
}

// The check itself is checked: each of these must be found.
func TestDockerfileProblemsAreFound(t *testing.T) {
	dockerfile, goMod := read(t, "../../Dockerfile"), read(t, "../../go.mod")
	for name, edit := range map[string]struct{ old, new string }{
		"root":                    {"USER 65532:65532", "USER root"},
		"uid 0":                   {"USER 65532:65532", "USER 0:0"},
		"no user":                 {"USER 65532:65532", ""},
		"root again":              {"ENTRYPOINT", "USER 0\nENTRYPOINT"},
		"another build line":      {"RUN make image-root", "RUN go build ./..."},
		"a second build line":     {"RUN make image-root", "RUN make image-root\nRUN make test"},
		"fetched with sources":    {"COPY go.mod go.sum ./\nRUN go mod download\nCOPY . .", "COPY . .\nRUN go mod download"},
		"no health check":         {"HEALTHCHECK --", "#"},
		"health check by a shell": {`CMD ["/usr/local/bin/durward", "health"]`, "CMD wget -q http://127.0.0.1:8081/healthz"},
		"health check off":        {"ENTRYPOINT", "HEALTHCHECK NONE\nENTRYPOINT"},
		"secret in a variable":    {"ENTRYPOINT", "ENV DURWARD_MASTER_KEY=abc\nENTRYPOINT"},
		"secret as an argument":   {"RUN make image-root", "ARG GITHUB_TOKEN\nRUN make image-root"},
		"secret copied":           {"ENTRYPOINT", "COPY durward.key /run/secrets/\nENTRYPOINT"},
		"floating Go":             {"golang:1.26.8-bookworm", "golang:latest"},
		"Go without patch":        {"golang:1.26.8-bookworm", "golang:1.26"},
		"Go older than go.mod's":  {"golang:1.26.8-bookworm", "golang:1.25.9-bookworm"},
		"floating base":           {"FROM scratch", "FROM alpine:latest"},
		"base without version":    {"FROM scratch", "FROM alpine"},
		"build stage is shipped":  {"FROM scratch", ""},
		"fetched over the net":    {"ENTRYPOINT", "ADD https://example.com/x /x\nENTRYPOINT"},
		"shell form of the start": {`ENTRYPOINT ["/usr/local/bin/durward"]`, "ENTRYPOINT durward"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(dockerfile, edit.old, edit.new, 1)
			if edited == dockerfile {
				t.Fatalf("the Dockerfile has no %q", edit.old)
			}
			if len(dockerfileProblems(edited, goMod)) == 0 {
				t.Error("not found")
			}
		})
	}
}

var (
	secretName = regexp.MustCompile(`(?i)(secret|password|passwd|token|api_?key|master_?key|private_?key|credential)`)
	secretFile = regexp.MustCompile(`(?i)(\.key|\.pem|\.env|secrets?|\.db|\.git)(\s|/|$)`)
	goImage    = regexp.MustCompile(`^golang:([0-9]+)\.([0-9]+)\.([0-9]+)-[a-z]+$`)
	goLine     = regexp.MustCompile(`(?m)^go ([0-9]+)\.([0-9]+)(?:\.([0-9]+))?$`)
	pinned     = regexp.MustCompile(`^[a-z0-9./-]+:[a-z]*-?[0-9]+(\.[0-9]+)+[a-z0-9.-]*$`)
)

func dockerfileProblems(dockerfile, goMod string) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var runs, froms []string
	user, health := "", ""
	for _, i := range parseDockerfile(dockerfile) {
		switch i.word {
		case "FROM":
			froms = append(froms, strings.Fields(i.args)[0])
			user, health = "", "" // a stage inherits neither
		case "RUN":
			runs = append(runs, i.args)
		case "USER":
			user = i.args
		case "HEALTHCHECK":
			health = i.args
		case "ADD":
			report("ADD %s: COPY cannot fetch or unpack by surprise", i.args)
		case "ARG", "ENV":
			if secretName.MatchString(i.args) {
				report("%s %s: looks like a secret, and stays in the image's history", i.word, i.args)
			}
		case "COPY":
			if secretFile.MatchString(i.args) {
				report("COPY %s: looks like a secret", i.args)
			}
		case "ENTRYPOINT", "CMD":
			if !strings.HasPrefix(i.args, "[") {
				report("%s %s: under a shell the gateway does not get SIGTERM", i.word, i.args)
			}
		}
	}
	if !slices.Equal(runs, []string{"go mod download", "make image-root"}) {
		report("RUN lines are %q, want `go mod download`, which builds nothing, and `make image-root`, which the tests run", runs)
	}
	if !strings.Contains(dockerfile, "\nCOPY go.mod go.sum ./\nRUN go mod download\nCOPY . .\n") {
		report("the modules are not fetched from go.mod and go.sum alone: every change of the sources fetches them anew")
	}
	if uid, _, _ := strings.Cut(user, ":"); uid == "" || uid == "root" || strings.Trim(uid, "0") == "" {
		report("the image runs as %q, want a user other than root", user)
	}
	if !strings.Contains(health, "CMD [") {
		report("the image has no health check, or one that needs a shell, which it does not have")
	}
	if len(froms) != 2 {
		report("stages are %q, want one that builds and one that is shipped", froms)
	}
	for _, from := range froms {
		if from != "scratch" && !pinned.MatchString(from) {
			report("FROM %s: no version", from)
		}
	}
	if len(froms) > 0 {
		if problem := goImageProblem(froms[0], goMod); problem != "" {
			report("FROM %s: %s", froms[0], problem)
		}
	}
	return problems
}

// goImageProblem holds the build image against go.mod: the same Go release, at
// least the patch it asks for.
func goImageProblem(image, goMod string) string {
	got, want := goImage.FindStringSubmatch(image), goLine.FindStringSubmatch(goMod)
	if got == nil || want == nil {
		return "want golang:MAJOR.MINOR.PATCH-VARIANT"
	}
	var gotPatch, wantPatch int
	fmt.Sscan(got[3], &gotPatch)
	fmt.Sscan(want[3], &wantPatch)
	if got[1] != want[1] || got[2] != want[2] || gotPatch < wantPatch {
		return "go.mod says " + want[0]
	}
	return ""
}

func parseDockerfile(text string) (instructions []instruction) {
	var joined strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if rest, more := strings.CutSuffix(line, "\\"); more {
			joined.WriteString(rest)
			continue
		}
		joined.WriteString(line)
		word, args, _ := strings.Cut(joined.String(), " ")
		instructions = append(instructions, instruction{strings.ToUpper(word), strings.TrimSpace(args)})
		joined.Reset()
	}
	return instructions
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
