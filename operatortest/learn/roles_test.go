package learn

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRolesOf(t *testing.T) {
	role := func(kind, name string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: " + kind + ", metadata: {name: " + name + "}}\n"
	}
	binding := func(subject string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: manager},
			roleRef: {kind: ClusterRole, name: manager-role}, subjects: [{kind: ` + subject + `, name: manager}]}` + "\n"
	}
	tests := map[string]struct {
		files       map[string]string
		own, others []string
	}{
		"only roles bound to a ServiceAccount": {
			map[string]string{
				"role.yaml": role("ClusterRole", "manager-role"), "binding.yaml": binding("ServiceAccount"), "reader.yaml": role("ClusterRole", "metrics-reader"),
				"same.yaml": role("Role", "manager-role"), "kustomization.yaml": "resources: [role.yaml]\n", "account.yaml": "{apiVersion: v1, kind: ServiceAccount}\n",
			},
			[]string{"role.yaml"}, []string{"reader.yaml", "same.yaml"},
		},
		"a binding to a user does not count": {
			map[string]string{"role.yaml": role("ClusterRole", "manager-role"), "binding.yaml": binding("User"), "more.yaml": role("Role", "more")},
			[]string{"more.yaml", "role.yaml"}, nil,
		},
		"without a binding, all but those for users": {
			map[string]string{
				"role.yaml": role("ClusterRole", "manager-role"), "a.yaml": role("ClusterRole", "site-admin-role"),
				"e.yaml": role("ClusterRole", "site-editor-role"), "v.yaml": role("ClusterRole", "site-viewer-role"),
			},
			[]string{"role.yaml"}, []string{"a.yaml", "e.yaml", "v.yaml"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, dir := NewWithT(t), t.TempDir()
			for file, content := range test.files {
				g.Expect(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600)).To(Succeed())
			}
			inDir := func(names []string) (paths []string) {
				for _, name := range names {
					paths = append(paths, filepath.Join(dir, name))
				}
				return paths
			}
			own, others, err := rolesOf([]string{dir})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(own).To(Equal(inDir(test.own)))
			g.Expect(others).To(Equal(inDir(test.others)))
			own, _, err = rolesOf([]string{filepath.Join(dir, "role.yaml")})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(own).To(Equal(inDir([]string{"role.yaml"})), "a file that is named by itself must always be used")
		})
	}
}
