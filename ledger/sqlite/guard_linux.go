package sqlite

import "golang.org/x/sys/unix"

// remote are the file systems, by magic number, that keep their files on
// another machine or behind a program of somebody else.
var remote = map[int64]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x01021997: "9p",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x73757245: "coda",
	0x564c:     "ncp",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x7461636f: "ocfs2",
	0x01161970: "gfs2",
	0x20030528: "orangefs",
	0x19830326: "beegfs",
	0x786f4256: "vboxsf",
	0x65735546: "fuse",
}

func fileSystem(dir string) (name string, network bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", false, err
	}
	name, network = remote[int64(uint32(st.Type))]
	return name, network, nil
}
