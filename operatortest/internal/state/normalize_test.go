package state

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestDropGenerated(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"the labels that a Job gets when it is created": {
			object: `{apiVersion: batch/v1, kind: Job,
				metadata: {labels: {controller-uid: a, batch.kubernetes.io/controller-uid: a, job-name: j, batch.kubernetes.io/job-name: j}},
				spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: a}}, template: {metadata: {
					labels: {app: ours, controller-uid: a, batch.kubernetes.io/controller-uid: a, job-name: j, batch.kubernetes.io/job-name: j}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: {metadata: {labels: {app: ours}}}}}`,
		},
		"the labels of a Job with a selector of its own stay": {
			object: `{apiVersion: batch/v1, kind: Job, spec: {manualSelector: true, selector: {matchLabels: {job-name: j}}, template: {metadata: {labels: {job-name: j}}}}}`,
			want:   `{apiVersion: batch/v1, kind: Job, spec: {manualSelector: true, selector: {matchLabels: {job-name: j}}, template: {metadata: {labels: {job-name: j}}}}}`,
		},
		"the addresses and node ports of a Service": {
			object: `{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30000}]}}`,
			want:   `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
		},
		"a headless Service stays headless": {
			object: `{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None]}}`,
			want:   `{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"another kind of the same name": {
			object: `{apiVersion: example.com/v1, kind: Job, metadata: {labels: {job-name: j}}}`,
			want:   `{apiVersion: example.com/v1, kind: Job, metadata: {labels: {job-name: j}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(test.object, "\t", " ")), &found.Object)).To(Succeed())
			DropGenerated(found)
			content, err := yaml.Marshal(found.Object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content).To(MatchYAML(test.want))
		})
	}
}
