/**
 * The disk of a stock Debian 12: its own kernel, systemd, cgroup v2, AppArmor, and the packages that Skiff's own scripts install on a new machine. It is made
 * once by debootstrap and kept in SKIFF_MACHINE_CACHE, by default `skiff-machine` in the user's cache directory. Nothing of the host is touched.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const release = 'bookworm'
const system = ['systemd-sysv', 'dbus', 'udev', 'kmod', 'login', 'e2fsprogs', 'ca-certificates', 'linux-image-cloud-amd64']
/** What scripts/packages.sh installs for real nodes, and what the tests look with. */
const programs = ['containerd', 'runc', 'containernetworking-plugins', 'nftables', 'iptables', 'conntrack', 'iproute2', 'busybox-static', 'kubernetes-client']
const tools = ['apparmor', 'ipvsadm', 'ipset', 'procps', 'openssl', 'socat']
const packages = [...system, ...programs, ...tools]
const diskBytes = 8 * 2 ** 30

/** Mounts the second disk, and runs the script for which the machine was started. Its output goes to the second serial port, everything else to the first. */
const unit = `[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/bash -c 'mkdir -p /mnt/in && mount /dev/vdb /mnt/in && exec /bin/bash /mnt/in/inside.sh >/dev/ttyS1 2>&1 </dev/null'
`

/** @returns the files with which qemu boots the machine */
export function machineImage() {
  const cache = process.env.SKIFF_MACHINE_CACHE ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'skiff-machine')
  const key = createHash('sha256')
    .update(JSON.stringify([release, packages, unit, diskBytes]))
    .digest('hex')
    .slice(0, 16)
  const directory = path.join(cache, key)
  if (!fs.existsSync(directory)) {
    console.log(`machine: installing Debian ${release} into ${directory}; this takes some minutes, once`)
    make(directory)
  }
  return { disk: path.join(directory, 'disk.img'), kernel: path.join(directory, 'vmlinuz'), initrd: path.join(directory, 'initrd') }
}

function make(directory) {
  const work = `${directory}.${process.pid}`
  const root = path.join(work, 'root')
  fs.mkdirSync(work, { recursive: true })
  try {
    install(root, path.join(work, 'debootstrap.log'))
    configure(root)
    take(root, /^vmlinuz-/, path.join(work, 'vmlinuz'))
    take(root, /^initrd\.img-/, path.join(work, 'initrd'))
    const disk = path.join(work, 'disk.img')
    fs.closeSync(fs.openSync(disk, 'w', 0o600))
    fs.truncateSync(disk, diskBytes)
    execFileSync('mkfs.ext4', ['-q', '-F', '-d', root, disk])
    fs.rmSync(root, { recursive: true, force: true })
    fs.renameSync(work, directory)
  } finally {
    fs.rmSync(work, { recursive: true, force: true })
  }
}

/** debootstrap mounts /proc of the new system: in a mount namespace of its own, so that a run that is killed leaves no mount. */
function install(root, log) {
  const output = fs.openSync(log, 'w')
  const words = ['--variant=minbase', `--include=${packages.join(',')}`, release, root]
  try {
    execFileSync('unshare', ['--mount', 'debootstrap', ...words], { stdio: ['ignore', output, output] })
  } catch {
    throw new Error(`debootstrap failed:\n${fs.readFileSync(log, 'utf8').split('\n').slice(-20).join('\n')}`)
  } finally {
    fs.closeSync(output)
  }
}

function configure(root) {
  const units = path.join(root, 'etc/systemd/system')
  fs.writeFileSync(path.join(root, 'etc/hostname'), 'machine\n')
  fs.writeFileSync(path.join(root, 'etc/fstab'), '/dev/vda / ext4 defaults 0 1\n')
  fs.writeFileSync(path.join(units, 'machine-run.service'), unit)
  fs.mkdirSync(path.join(units, 'multi-user.target.wants'), { recursive: true })
  fs.symlinkSync('../machine-run.service', path.join(units, 'multi-user.target.wants/machine-run.service'))
  // Each node runs a containerd of its own.
  fs.symlinkSync('/dev/null', path.join(units, 'containerd.service'))
}

function take(root, pattern, target) {
  const boot = path.join(root, 'boot')
  const name = fs.readdirSync(boot).find((file) => pattern.test(file))
  if (!name) throw new Error(`Debian's kernel package has no file ${pattern} in /boot`)
  fs.copyFileSync(path.join(boot, name), target)
}
