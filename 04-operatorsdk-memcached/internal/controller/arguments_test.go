package controller

//workshop:given 4.14b

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWantedArguments(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	g.Expect(wantedArguments(memcached)).To(Equal([]string{"--port=11211", "--memory-limit=64"}),
		"with any other argument, an update of the operator would replace the pods of all Memcacheds")
	memcached.Spec.MaxConnections = 512
	g.Expect(wantedArguments(memcached)).To(Equal([]string{"--port=11211", "--memory-limit=64", "--conn-limit=512"}), "see wantedArguments in desired.go")
}

func TestSetDeploymentKeepsTheArgumentsOfOthers(t *testing.T) {
	tests := map[string]struct {
		found []string
		limit int32
		want  []string
	}{
		"nothing changes": {
			found: []string{"--port=11211", "--memory-limit=64", "--disable-cas"},
			want:  []string{"--port=11211", "--memory-limit=64", "--disable-cas"},
		},
		"the limit is new": {
			found: []string{"--port=11211", "--memory-limit=64", "--disable-cas", "--threads", "2"},
			limit: 512,
			want:  []string{"--port=11211", "--memory-limit=64", "--conn-limit=512", "--disable-cas", "--threads", "2"},
		},
		"the limit changes": {
			found: []string{"--port=11211", "--memory-limit=64", "--conn-limit=512", "--disable-cas"},
			limit: 1024,
			want:  []string{"--port=11211", "--memory-limit=64", "--conn-limit=1024", "--disable-cas"},
		},
		"the spec has no limit any more": {
			found: []string{"--port=11211", "--memory-limit=64", "--conn-limit=512", "--disable-cas"},
			want:  []string{"--port=11211", "--memory-limit=64", "--disable-cas"},
		},
		"the arguments of others come first": {
			found: []string{"--disable-cas", "--port=11211", "--memory-limit=64"},
			want:  []string{"--port=11211", "--memory-limit=64", "--disable-cas"},
		},
		"one of our arguments is there twice": {
			found: []string{"--port=11211", "--memory-limit=64", "--disable-cas", "--port=80"},
			want:  []string{"--port=11211", "--memory-limit=64", "--disable-cas"},
		},
		"someone else's argument begins like one of ours": {
			found: []string{"--port=11211", "--memory-limit=64", "--port-file=/tmp/port", "--port"},
			want:  []string{"--port=11211", "--memory-limit=64", "--port-file=/tmp/port", "--port"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			memcached := storedMemcached()
			deployment := newDeployment(memcached)
			container := &deployment.Spec.Template.Spec.Containers[0]
			container.Args = test.found
			memcached.Spec.MaxConnections = test.limit
			setDeployment(deployment, memcached, DefaultImage)
			g.Expect(container.Args).To(Equal(test.want), "see replaceArguments in desired.go")
		})
	}
}
