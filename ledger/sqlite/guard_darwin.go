package sqlite

import "golang.org/x/sys/unix"

func fileSystem(dir string) (name string, network bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", false, err
	}
	name = unix.ByteSliceToString(st.Fstypename[:])
	// A disk of this machine says so itself.
	return name, st.Flags&unix.MNT_LOCAL == 0 || name == "macfuse" || name == "osxfuse", nil
}
