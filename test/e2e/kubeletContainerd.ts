/** A containerd of its own in a network namespace of its own, below a temporary directory (tests only); removed completely at the end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { access, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectCri } from '#grpc/criClient'
import { check, createExec } from '#host/exec'
import { createMounter } from '#host/mounts'
import { createNetworkNamespaces, inNetworkNamespace } from '#host/netns'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { importImage } from '#kubelet/images/importImage'
import { pauseImage } from '#kubelet/images/pauseImage'

export const busybox = 'skiff.test/busybox:1'
const pause = 'skiff.test/pause:1'

/** Why this machine cannot run containers; undefined: it can. */
export async function missingPrerequisite(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'needs root'
  for (const file of ['/usr/bin/containerd', '/usr/sbin/runc', '/usr/lib/cni/bridge', '/bin/busybox']) {
    const there = await access(file).then(
      () => true,
      () => false,
    )
    if (!there) return `needs ${file}`
  }
  return undefined
}

export interface TestContainerd {
  readonly directory: string
  readonly socket: string
  /** The network namespace in which pods and streaming server live. */
  readonly namespace: string
  readonly cgroupRoot: string
  stop(): Promise<void>
}

const config = (directory: string) => `version = 2
root = "${directory}/root"
state = "${directory}/state"
[grpc]
  address = "${directory}/containerd.sock"
[ttrpc]
  address = "${directory}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "${directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "${pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  stats_collect_period = 1
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${directory}/cni"
`

const cni = (directory: string) =>
  JSON.stringify({
    cniVersion: '0.4.0',
    name: 'skiff-test',
    plugins: [
      {
        type: 'bridge',
        bridge: 'skifft0',
        isGateway: true,
        ipMasq: false,
        ipam: { type: 'host-local', dataDir: `${directory}/ipam`, ranges: [[{ subnet: '10.123.45.0/24' }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
    ],
  })

/**
 * Starts it and loads the pause and busybox images.
 * @param prepare makes its directory ready, for example mounts a file system at root, where images and containers go
 */
export async function startContainerd(prepare: (directory: string) => Promise<void> = async () => {}): Promise<TestContainerd> {
  const exec = createExec()
  const directory = await mkdtemp('/tmp/skiff-kubelet-')
  await prepare(directory)
  const namespace = `skiff-${directory.slice(-6)}`
  await mkdir(join(directory, 'cni'), { recursive: true })
  await writeFile(join(directory, 'config.toml'), config(directory))
  await writeFile(join(directory, 'cni/10-test.conflist'), cni(directory))
  await createNetworkNamespaces(exec).create(namespace)
  await check(createExec(inNetworkNamespace(namespace)), 'ip', ['link', 'set', 'lo', 'up'])
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  const child = spawn(enter, [...rest, 'containerd', '-c', join(directory, 'config.toml')], { stdio: 'ignore', detached: true })
  const socket = join(directory, 'containerd.sock')
  const containerd = { directory, socket, namespace, cgroupRoot: `/skiff-test-${directory.slice(-6)}`, stop: () => stopAll(directory, namespace, child) }
  try {
    await waitUntilServing(socket)
    await importImage({ exec, socket }, pauseImage(pause))
    await importImage({ exec, socket }, await busyboxImage(exec, [busybox]))
    return containerd
  } catch (error) {
    await containerd.stop()
    throw error
  }
}

async function waitUntilServing(socket: string): Promise<void> {
  const client = connectCri(socket)
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        await client.call('RuntimeService', 'Version', {}, { timeoutMs: 1_000 })
        return
      } catch (error) {
        if (attempt > 100) throw error
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  } finally {
    client.close()
  }
}

async function stopAll(directory: string, namespace: string, child: ChildProcess): Promise<void> {
  const exec = createExec()
  // Shims and their containers outlive containerd: those of this directory, by pid.
  const ended = new Promise<void>((resolve) => (child.exitCode === null ? child.once('exit', () => resolve()) : resolve()))
  child.kill('SIGKILL')
  await ended
  for (const pid of await processesOf(directory)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited meanwhile.
    }
  }
  const mounter = createMounter(exec)
  const mounted = (await mounter.list()).map((mount) => mount.mountPoint).filter((point) => point.startsWith(`${directory}/`))
  for (const point of mounted.sort((a, b) => b.length - a.length)) await mounter.unmount(point, { lazy: true })
  await createNetworkNamespaces(exec).delete(namespace)
  await rm(directory, { recursive: true, force: true })
}

/** containerd shims whose command line names the directory, and the processes below them. */
async function processesOf(directory: string): Promise<number[]> {
  const { readFile } = await import('node:fs/promises')
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const commandLine = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    if (!commandLine.includes(directory) || !commandLine.includes('containerd-shim')) continue
    const children = await readFile(`/proc/${name}/task/${name}/children`, 'utf8').catch(() => '')
    found.push(...children.trim().split(' ').filter(Boolean).map(Number), Number(name))
  }
  return found
}
