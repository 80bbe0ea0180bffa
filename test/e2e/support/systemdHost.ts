/**
 * A host whose process 1 is systemd, in namespaces of its own for processes, mounts, the network and cgroups: the installed systemd with none of this machine's units.
 * Units that are installed in it stay over a reboot; this machine's units stay as they are.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../support/until.ts'

const systemd = '/lib/systemd/systemd'

/** Why there can be none here; false when there can. */
export const obstacleToSystemd: string | false =
  process.platform !== 'linux' || process.getuid?.() !== 0 ? 'needs root on Linux' : fs.existsSync(systemd) ? false : 'needs systemd'

/** The cgroup is made before its namespace, so that systemd sees no other one. */
const boot = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/$CGROUP
echo 0 > /sys/fs/cgroup/$CGROUP/cgroup.procs
umount /sys/fs/cgroup
exec unshare --cgroup bash -c "$INSIDE"`

/** Targets alone: the units of this machine would change its files. */
const inside = `set -e
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /run
for folder in /usr/lib/systemd/system /usr/lib/systemd/system-generators /usr/lib/systemd/system-shutdown; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mount --bind "$UNITS" /etc/systemd/system
for target in sysinit basic network-online shutdown umount final; do printf '[Unit]\\nDefaultDependencies=no\\n' > /usr/lib/systemd/system/$target.target; done
printf '[Unit]\\nRequires=basic.target\\nAfter=basic.target\\n' > /usr/lib/systemd/system/multi-user.target
ln -s multi-user.target /usr/lib/systemd/system/default.target
ip link set lo up
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=test ${systemd} --system --log-target=null --show-status=no`

export interface SystemdHost {
  /** Words in front of a command that is to run on the host. */
  enter(): readonly string[]
  /** The output of systemctl, whatever its exit code is. */
  systemctl(...args: string[]): Promise<string>
  /** As after a power cut. */
  reboot(): Promise<void>
  end(): Promise<void>
}

/** @param directory for the units */
export async function startSystemdHost(directory: string): Promise<SystemdHost> {
  const units = path.join(directory, 'units')
  fs.mkdirSync(units)
  let running: Running = await bootHost(units)
  const enter = () => ['nsenter', `--target=${running.pid}`, '--mount', '--pid', '--net', '--cgroup', '--uts', '--ipc', '--']
  const systemctl = async (...args: string[]) => {
    const [program = '', ...words] = [...enter(), 'systemctl', '--no-pager', ...args]
    const outcome = await promisify(execFile)(program, words, { timeout: 150_000 }).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }))
    return outcome.stdout.trim()
  }
  const ready = () => until('systemd runs', async () => /running|degraded/.test(await systemctl('is-system-running')))
  await ready()
  return {
    enter,
    systemctl,
    async reboot() {
      await endHost(running)
      running = await bootHost(units)
      await ready()
    },
    end: () => endHost(running),
  }
}

interface Running {
  readonly child: ChildProcess
  /** Of systemd, as this machine numbers it. */
  readonly pid: number
  readonly cgroup: string
}

let hosts = 0

async function bootHost(units: string): Promise<Running> {
  const cgroup = `skiff-systemd-${process.pid}-${++hosts}`
  const namespaces = ['--mount', '--uts', '--ipc', '--net', '--pid', '--fork', '--kill-child']
  const env = { ...process.env, CGROUP: cgroup, INSIDE: inside, UNITS: units }
  const child = spawn('unshare', [...namespaces, 'bash', '-c', boot], { env, stdio: 'ignore' })
  const pid = await until('systemd has started', () => {
    if (child.exitCode !== null) throw new Error(`systemd did not start: exit code ${child.exitCode}`)
    const [first] = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')
    return first && fs.readFileSync(`/proc/${first}/comm`, 'utf8').trim() === 'systemd' ? Number(first) : undefined
  })
  return { child, pid, cgroup }
}

/** Everything on the host ends with its process 1. */
async function endHost({ child, pid, cgroup }: Running): Promise<void> {
  const ended = once(child, 'exit')
  process.kill(pid, 'SIGKILL')
  await ended
  const mounts = fs.readFileSync('/proc/mounts', 'utf8').split('\n')
  const unified = mounts.map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2')?.[1]
  if (unified) await until('the cgroups are gone', () => removeCgroups(path.join(unified, cgroup)))
}

function removeCgroups(folder: string): boolean {
  try {
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) removeCgroups(path.join(folder, entry.name))
    fs.rmdirSync(folder)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
