package house

import (
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object is a mapping of YAML.
type object = map[string]any

// at returns the value at a path of names in an object; nil when there is none.
func at(value any, path ...string) any {
	for _, name := range path {
		members, _ := value.(object)
		value = members[name]
	}
	return value
}

// objects returns the members of a list at a path that are mappings.
func objects(value any, path ...string) (found []object) {
	list, _ := at(value, path...).([]any)
	for _, member := range list {
		if o, ok := member.(object); ok {
			found = append(found, o)
		}
	}
	return found
}

// documents reads all documents of YAML; names that are there twice are an error.
func documents(t *testing.T, text string) (found []object) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document object
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		case document != nil:
			found = append(found, document)
		}
	}
}

const goldenManifests = "../../deploy/helm/testdata/*.golden.yaml"

func TestChart(t *testing.T) {
	files, err := filepath.Glob(goldenManifests)
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	for _, file := range files {
		for _, problem := range chartProblems(documents(t, read(t, file))) {
			t.Errorf("%s: %s", filepath.Base(file), problem)
		}
	}
}

// The check itself is checked: each of these must be found.
func TestChartProblemsAreFound(t *testing.T) {
	manifests := read(t, "../../deploy/helm/testdata/minimal.golden.yaml")
	for name, edit := range map[string]struct{ old, new string }{
		"secret in the ConfigMap":   {"{file./run/secrets/durward_database}", "postgres://durward:geheim@db/durward"},
		"a Secret of its own":       {"kind: ServiceAccount", "kind: Secret"},
		"secret in a variable":      {"value: /var/lib/durward/config", "value: postgres://durward:geheim@db/durward"},
		"no readiness":              {"readinessProbe:", "otherProbe:"},
		"readiness without store":   {"path: /readyz", "path: /healthz"},
		"liveness with store":       {"livenessProbe:\n            httpGet: {path: /healthz", "livenessProbe:\n            httpGet: {path: /readyz"},
		"no budget":                 {"kind: PodDisruptionBudget", "kind: Other"},
		"ends at once":              {"sleep:\n", "exec:\n"},
		"a budget of none":          {"maxUnavailable: 1", "maxUnavailable: 0"},
		"budget of other pods":      {"unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: durward", "unhealthyPodEvictionPolicy: AlwaysAllow\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: other"},
		"journal goes with the pod": {"volumeClaimTemplates:", "otherTemplates:"},
		"journal is thrown away":    {"whenScaled: Retain", "whenScaled: Delete"},
		"killed while it drains":    {"terminationGracePeriodSeconds: 55", "terminationGracePeriodSeconds: 30"},
		"root":                      {"runAsNonRoot: true", "runAsNonRoot: false"},
		"writable":                  {"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		"capabilities":              {"drop: [ALL]", "drop: []"},
		"a token of the cluster":    {"automountServiceAccountToken: false\n      enable", "automountServiceAccountToken: true\n      enable"},
		"no bound of memory":        {"memory: 1Gi", "ephemeral-storage: 1Gi"},
		"all on one machine":        {"topologyKey: kubernetes.io/hostname", "topologyKey: example.com/rack"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(manifests, edit.old, edit.new, 1)
			if edited == manifests {
				t.Fatalf("the manifests have no %q", edit.old)
			}
			if len(chartProblems(documents(t, edited))) == 0 {
				t.Error("not found")
			}
		})
	}
}

// literalSecret matches text that must not be written out: addresses with a password, and keys.
var literalSecret = regexp.MustCompile(`://[^\s/{}]*:[^\s/{}]*@|\b[A-Za-z0-9+/]{43}=|\b[0-9a-f]{48,}\b|BEGIN [A-Z ]*PRIVATE KEY`)

// chartProblems lists the problems of rendered manifests.
func chartProblems(manifests []object) (problems []string) {
	problem := func(ok bool, text string) {
		if !ok {
			problems = append(problems, text)
		}
	}
	kinds := map[string][]object{}
	for _, m := range manifests {
		kind, _ := m["kind"].(string)
		kinds[kind] = append(kinds[kind], m)
	}
	problem(len(kinds["Secret"]) == 0, "a Secret is made")
	problem(len(kinds["Service"]) == 2, "there are not two Services")
	for _, c := range kinds["ConfigMap"] {
		text, _ := at(c, "data", "Caddyfile").(string)
		problem(strings.Contains(text, "store postgres {file./run/secrets/"), "the database's address is no reference")
		problem(!literalSecret.MatchString(text), "a secret in a ConfigMap")
	}
	problem(len(kinds["ConfigMap"]) == 1 && len(kinds["StatefulSet"]) == 1 && len(kinds["PodDisruptionBudget"]) == 1, "not one ConfigMap, StatefulSet and PodDisruptionBudget")
	for _, set := range kinds["StatefulSet"] {
		pod := at(set, "spec", "template", "spec")
		labels, _ := at(set, "spec", "template", "metadata", "labels").(object)
		for _, budget := range kinds["PodDisruptionBudget"] {
			problem(at(budget, "spec", "maxUnavailable") == 1, "the budget lets none or many go")
			selector, _ := at(budget, "spec", "selector", "matchLabels").(object)
			problem(len(selector) > 0, "the budget is of nobody")
			for name, value := range selector {
				problem(labels[name] == value, "the budget is of other pods")
			}
		}
		problem(at(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Retain", "the journal is thrown away")
		problem(slices.ContainsFunc(objects(set, "spec", "volumeClaimTemplates"), func(c object) bool { return at(c, "metadata", "name") == "data" }), "the journal has no volume")
		problem(at(pod, "automountServiceAccountToken") == false, "the pod has a token of the cluster")
		problem(at(pod, "securityContext", "runAsNonRoot") == true, "the pod may run as root")
		problem(slices.ContainsFunc(objects(pod, "topologySpreadConstraints"), func(c object) bool { return c["topologyKey"] == "kubernetes.io/hostname" }), "pods may share a machine")
		for _, container := range objects(pod, "containers") {
			problems = append(problems, containerProblems(container, pod)...)
		}
	}
	return problems
}

func containerProblems(container object, pod any) (problems []string) {
	problem := func(ok bool, text string) {
		if !ok {
			problems = append(problems, text)
		}
	}
	for probe, path := range map[string]string{"livenessProbe": "/healthz", "readinessProbe": "/readyz", "startupProbe": "/healthz"} {
		problem(at(container, probe, "httpGet", "path") == path, probe+" does not ask for "+path)
	}
	grace, _ := at(pod, "terminationGracePeriodSeconds").(int)
	before, stops := at(container, "lifecycle", "preStop", "sleep", "seconds").(int) // by the cluster: the image has no program for that
	problem(stops, "an ending pod gets requests")
	problem(!stops || grace >= before+45, "a pod is killed while it drains")
	problem(at(container, "resources", "limits", "memory") != nil, "memory has no limit")
	problem(at(container, "securityContext", "readOnlyRootFilesystem") == true, "the root file system is writable")
	problem(at(container, "securityContext", "allowPrivilegeEscalation") == false, "privileges may grow")
	drop, _ := at(container, "securityContext", "capabilities", "drop").([]any)
	problem(slices.Equal(drop, []any{"ALL"}), "capabilities are kept")
	mounts := objects(container, "volumeMounts")
	problem(slices.ContainsFunc(mounts, func(m object) bool { return m["name"] == "data" && m["mountPath"] == "/var/lib/durward" }), "the journal is not on its volume")
	for _, variable := range objects(container, "env") {
		value, _ := variable["value"].(string)
		problem(!literalSecret.MatchString(value), "a secret in a variable")
	}
	return problems
}

func TestCompose(t *testing.T) {
	const folder = "../../deploy/compose/"
	compose := documents(t, read(t, folder+"compose.yaml"))[0]
	services, _ := compose["services"].(object)
	secrets, _ := compose["secrets"].(object)
	for name, secret := range secrets {
		if file, _ := at(secret, "file").(string); file != "./secrets/"+name {
			t.Errorf("secret %s is not a file in secrets/: %q", name, file)
		}
		if !strings.Contains(read(t, folder+"secrets.sh"), "make "+name+" ") {
			t.Errorf("secrets.sh does not make %s", name)
		}
	}
	if literalSecret.MatchString(read(t, folder+"compose.yaml")) {
		t.Error("a secret is written out")
	}
	networks, _ := compose["networks"].(object)
	volumes, _ := compose["volumes"].(object)
	for name, service := range services {
		for _, used := range []struct {
			path  string
			known object
		}{{"secrets", secrets}, {"networks", networks}, {"depends_on", services}} {
			for _, want := range namesOf(at(service, used.path)) {
				if _, ok := used.known[want]; !ok {
					t.Errorf("%s has %s of %s, which there are not", name, want, used.path)
				}
			}
		}
		for _, mount := range namesOf(at(service, "volumes")) {
			source, _, _ := strings.Cut(mount, ":")
			_, volume := volumes[source]
			if _, err := os.Stat(filepath.Join(folder, source)); err != nil && !volume {
				t.Errorf("%s mounts %s, which there is not", name, source)
			}
		}
	}
	own := map[string]bool{}
	for _, name := range []string{"node1", "node2", "node3"} {
		mounts := namesOf(at(services, name, "volumes"))
		if !slices.Contains(mounts, name+":/var/lib/durward") {
			t.Errorf("%s has no journal of its own", name)
		}
		own[name] = at(services, name, "read_only") == true && at(services, name, "ports") == nil
	}
	if len(own) != 3 || !own["node1"] || !own["node2"] || !own["node3"] {
		t.Errorf("nodes are writable or reached past the load balancer: %v", own)
	}
	if at(networks, "back", "internal") != true || at(services, "postgres", "ports") != nil {
		t.Error("the database is reached from outside")
	}
	for _, problem := range addressProblems(compose) {
		t.Error(problem)
	}
	if !strings.Contains(read(t, folder+"lb.Caddyfile"), "\n\trespond /readyz 404\n") {
		t.Error("whoever is outside may ask which nodes are ready")
	}
	lb, _ := at(services, "lb", "networks", "front", "ipv4_address").(string)
	if lb == "" || !strings.Contains(read(t, folder+"node.Caddyfile"), "allow "+lb+"/32") {
		t.Errorf("nodes do not believe the load balancer at %q", lb)
	}
	for _, script := range []string{"secrets.sh", "postgres.sh"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", folder+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}

// The check itself is checked: each of these must be found.
func TestAddressProblemsAreFound(t *testing.T) {
	compose := read(t, "../../deploy/compose/compose.yaml")
	for name, edit := range map[string]struct{ old, new string }{
		"every address is handed out": {", ip_range: 172.30.7.128/25", ""},
		"fixed among what is not":     {"ip_range: 172.30.7.128/25", "ip_range: 172.30.7.0/25"},
		"outside the network":         {"ipv4_address: 172.30.7.2", "ipv4_address: 172.30.8.2"},
		"a range outside the network": {"ip_range: 172.30.7.128/25", "ip_range: 172.30.9.128/25"},
	} {
		edited := strings.Replace(compose, edit.old, edit.new, 1)
		if edited == compose {
			t.Fatalf("%s: there is no %q", name, edit.old)
		}
		if len(addressProblems(documents(t, edited)[0])) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

// addressProblems lists the problems of fixed addresses of services: a service that starts first may get one of them
// dynamically, and the service that wants it does not start.
func addressProblems(compose object) (problems []string) {
	services, _ := compose["services"].(object)
	fixed := 0
	for name, service := range services {
		networks, _ := at(service, "networks").(object)
		for network, place := range networks {
			text, _ := at(place, "ipv4_address").(string)
			if text == "" {
				continue
			}
			fixed++
			address, err := netip.ParseAddr(text)
			if err != nil {
				problems = append(problems, name+": "+err.Error())
				continue
			}
			for _, config := range objects(compose, "networks", network, "ipam", "config") {
				subnet, errSubnet := netip.ParsePrefix(config["subnet"].(string))
				handed, _ := config["ip_range"].(string)
				handedOut, errRange := netip.ParsePrefix(handed)
				switch {
				case errSubnet != nil || errRange != nil:
					problems = append(problems, network+": which addresses are handed out is not said")
				case !subnet.Contains(handedOut.Addr()) || handedOut.Bits() < subnet.Bits():
					problems = append(problems, network+": addresses of other networks are handed out")
				case !subnet.Contains(address) || handedOut.Contains(address):
					problems = append(problems, name+": "+text+" is not of "+network+", or handed out there")
				}
			}
		}
	}
	if fixed == 0 {
		problems = append(problems, "no address is fixed")
	}
	return problems
}

// TestDashboard checks that the dashboard shows only existing metrics, and all of the gateway's.
func TestDashboard(t *testing.T) {
	text := read(t, "../../deploy/grafana/durward.json")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(dashboard.Panels), err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:durward|mcp|gen_ai)_[a-z_]+)` \\|").FindAllStringSubmatch(read(t, "../../docs/operating.md"), -1) {
		documented = append(documented, row[1])
	}
	name := regexp.MustCompile(`\b(?:durward|mcp_client|gen_ai_client)_[a-z_]+`)
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			for _, metric := range name.FindAllString(target.Expr, -1) {
				if !slices.Contains(documented, strings.TrimSuffix(metric, "_bucket")) {
					t.Errorf("%s shows %s, which there is not", panel.Title, metric)
				}
			}
		}
	}
	for _, metric := range documented {
		if !strings.Contains(text, metric) {
			t.Errorf("%s is not on the dashboard", metric)
		}
	}
}

// namesOf returns the words of a list, or the names of a mapping.
func namesOf(value any) (names []string) {
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			if name, ok := member.(string); ok {
				names = append(names, name)
			}
		}
	case object:
		for name := range value {
			names = append(names, name)
		}
	}
	return names
}
