package learn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/operatortest/internal/manifest"
)

// roleFile is a file that contains Roles or ClusterRoles.
type roleFile struct {
	path string
	// roles lists their kinds and names.
	roles []string
}

// rolesOf returns the files with the operator's own roles, and the files that are left out because they contain only
// other roles. In a folder, a role is the operator's if a binding there gives it to a ServiceAccount. If a folder has
// no such binding, every role counts as the operator's unless its name says that it is for users. A file that is itself
// in paths always counts as the operator's.
func rolesOf(paths []string) (own, others []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, fmt.Errorf("--role: %w", err)
		}
		if !info.IsDir() {
			own = append(own, path)
			continue
		}
		files, bound, err := readRoles(path)
		if err != nil {
			return nil, nil, fmt.Errorf("--role: %w", err)
		}
		before := len(own)
		for _, file := range files {
			if slices.ContainsFunc(file.roles, func(role string) bool { return isOwn(role, bound) }) {
				own = append(own, file.path)
			} else {
				others = append(others, file.path)
			}
		}
		if len(own) == before {
			return nil, nil, fmt.Errorf("--role: %s contains no Role and no ClusterRole of the operator: give the file with the operator's roles instead", filepath.Clean(path))
		}
	}
	return own, others, nil
}

func isOwn(role string, bound []string) bool {
	if len(bound) > 0 {
		return slices.Contains(bound, role)
	}
	// kubebuilder gives names with these suffixes to the roles that an administrator grants to users.
	return !slices.ContainsFunc([]string{"-admin-role", "-editor-role", "-viewer-role"}, func(suffix string) bool { return strings.HasSuffix(role, suffix) })
}

// readRoles returns the files in a folder that contain roles, and the roles that bindings in it give to
// ServiceAccounts.
func readRoles(dir string) (files []roleFile, bound []string, err error) {
	paths, err := manifest.Files(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		objects, err := manifest.Read(path)
		if err != nil {
			continue // for example a tool's own file, which contains no object
		}
		file := roleFile{path: path}
		for _, object := range objects {
			if object.GroupVersionKind().Group != rbacv1.GroupName {
				continue
			}
			switch object.GetKind() {
			case "Role", "ClusterRole":
				file.roles = append(file.roles, object.GetKind()+" "+object.GetName())
			case "RoleBinding", "ClusterRoleBinding":
				bound = append(bound, boundBy(object)...)
			}
		}
		if len(file.roles) > 0 {
			files = append(files, file)
		}
	}
	return files, bound, nil
}

// boundBy returns the role that a binding gives to a ServiceAccount, or none.
func boundBy(binding *unstructured.Unstructured) []string {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	isAccount := func(subject any) bool {
		fields, _ := subject.(map[string]any)
		return fields["kind"] == rbacv1.ServiceAccountKind
	}
	if !slices.ContainsFunc(subjects, isAccount) {
		return nil
	}
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return []string{kind + " " + name}
}
