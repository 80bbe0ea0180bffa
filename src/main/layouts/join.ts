/**
 * `skiff join HOST:PORT` (L5): makes this machine a node of a cluster. It checks which cluster answers, writes what the kubelet needs, and runs the kubelet in the
 * foreground, which asks for its certificate with the bootstrap token. ./joinControlPlane.ts joins a control plane. Upstream: kubeadm join (v1.36).
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { printable } from '#base/printable'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { joinEndpoint } from '#cli/kubeadm/endpoint'
import { configMaps } from '#client/builtIn'
import { exists, makeDirectory, writeFileAtomic } from '#host/files'
import { askAsToken } from '../join/asToken.ts'
import { discoverCluster } from '../join/discovery.ts'
import { type JoinOptions, type NodeJoin, readJoinOptions } from '../join/joinOptions.ts'
import { checkInstall, installJoined, joinUnit } from '../join/joinUnit.ts'
import { done } from '../join/progressLines.ts'
import type { TrustedCluster } from '../join/verifyClusterInfo.ts'
import { createRealClock } from '../realClock.ts'
import { unitText } from '../systemd/units.ts'
import { kubeletConfigName } from './joinAccess.ts'
import { ownProgram } from './processTools.ts'

const signedMs = 60_000

const help = `Makes this machine a node of a cluster, and runs its kubelet in the foreground; or a further control plane.

Usage:
  skiff join HOST:PORT --token TOKEN --discovery-token-ca-cert-hash sha256:HASH [flags] [-- kubelet's flags]
  skiff join HOST:PORT --token TOKEN --discovery-token-ca-cert-hash sha256:HASH --control-plane --certificate-key KEY [flags]
  skiff join --config FILE [flags]
  skiff join --control-plane             runs the control plane of a machine that has joined
  skiff join … --install                 the same, by a unit of systemd instead of in the foreground

      --token                                    the bootstrap token: skiff token create makes one
      --token-file                               a file with the token, or - for standard input: until it starts, every user of the machine can
                                                 read the arguments of a command
      --discovery-token-ca-cert-hash             sha256: and the hash of the public key of the cluster's authority; may be repeated
      --discovery-token-unsafe-skip-ca-verification
                                                 trust any authority that the token has signed: whoever knows the token can pretend to be the cluster
      --config                                   a JoinConfiguration of kubeadm, v1beta4 or v1beta3; a flag wins over it
      --node-name                                the name of the node (default: this machine's)
      --config-dir                               where kubeconfigs, keys and the authority are written (default: /etc/kubernetes)
      --root-dir                                 the kubelet's directory (default: /var/lib/kubelet)
      --install                                  run it by a unit of systemd, from each boot on; --dry-run prints the unit
  -v, --v                                        verbosity of the log (default: 2)

A node needs containerd, and a network plugin for its pods. What follows -- are flags of the kubelet: skiff kubelet --help lists them.

      --control-plane                            run API server, controllers and scheduler, over the cluster's etcd
      --certificate-key                          the key that skiff certs upload has printed on another control plane
      --certificate-key-file                     a file with that key, or - for standard input
      --apiserver-advertise-address              this machine's address for the others (default: that from which it reaches the cluster)
      --apiserver-bind-port                      the port of its API (default: that of HOST:PORT; all control planes have the same)
`

/** Resolves with the exit code when the kubelet has ended, or when the machine cannot join. */
export async function runJoin(args: readonly string[], signal: AbortSignal): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help)
    return exitCodes.ok
  }
  const clock = createRealClock()
  let join: JoinOptions
  try {
    join = await readJoinOptions(args)
    const unit = joinUnit(join, join.as === 'node' ? kubeletArgs(join) : [], ownProgram())
    if (join.runBy === 'print') {
      process.stdout.write(unitText(unit))
      return exitCodes.ok
    }
    if (join.runBy === 'unit') await checkInstall()
    if (join.as === 'node') await prepare(join, clock, signal)
    else if (join.as === 'controlPlane') await (await controlPlane()).joinControlPlane(join, clock, signal)
    if (join.runBy === 'unit') {
      await installJoined(unit)
      return join.as === 'node' ? await untilSigned(join, clock, signal) : exitCodes.ok
    }
    if (join.as !== 'node') return await (await controlPlane()).runControlPlane(join.files, join.verbosity, signal)
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted
    if (!(error instanceof CommandError)) throw error
    const lines = [`error: ${error.message}`, ...(error.hint ? [`hint: ${error.hint}`] : [])]
    process.stderr.write(lines.map((line) => `${printable(line)}\n`).join(''))
    return exitCodes[error.exit]
  }
  void announce(join, clock, signal)
  const { runKubeletProcess } = await import('./kubelet.ts')
  return runKubeletProcess(kubeletArgs(join), signal)
}

/** Loaded by those that need it. */
const controlPlane = () => import('./joinControlPlane.ts')

/** Everything before the kubelet. @throws CommandError */
async function prepare(join: NodeJoin, clock: Clock, signal: AbortSignal): Promise<void> {
  const { place, token, authorities, files } = join
  if (await exists(files.kubeconfig)) {
    throw new CommandError('alreadyExists', `${files.kubeconfig} is there: this machine has joined a cluster`, {
      hint: `run its kubelet: skiff kubelet ${kubeletArgs(join).join(' ')}; skiff leave takes the machine out`,
    })
  }
  const cluster = await discoverCluster({ place, token, authorities, clock, signal })
  done(`The cluster at ${joinEndpoint(place)} is signed with token ${token.id}${authorities === 'any' ? '' : ', and its authority is the expected one'}`)
  const name = { namespace: 'kube-system', name: kubeletConfigName }
  const configuration = (await askAsToken(cluster, token, clock, (client) => client.of(configMaps).get(name, { signal })))?.data?.kubelet
  done(
    configuration === undefined
      ? 'The cluster has no configuration for kubelets: the defaults are used'
      : 'The configuration of the kubelet is that of the cluster',
  )
  await write(join, cluster, configuration)
  done(`Written: ${[files.ca, files.bootstrap, files.config].join(', ')}`)
}

async function write({ token, files }: NodeJoin, { server, ca }: TrustedCluster, configuration: string | undefined): Promise<void> {
  for (const file of [files.ca, files.bootstrap, files.config]) await makeDirectory(path.dirname(file), 0o755)
  await writeFileAtomic(files.ca, ca, 0o644)
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'default',
    clusters: [{ name: 'default', cluster: { server, 'certificate-authority': files.ca } }],
    users: [{ name: 'default', user: { token: `${token.id}.${token.secret}` } }],
    contexts: [{ name: 'default', context: { cluster: 'default', user: 'default' } }],
  }
  await writeFileAtomic(files.bootstrap, `${JSON.stringify(kubeconfig, null, 2)}\n`, 0o600)
  await writeFileAtomic(files.config, configuration ?? 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n', 0o644)
}

function kubeletArgs({ files, nodeName, kubeletFlags }: NodeJoin): string[] {
  return [
    `--config=${files.config}`,
    `--bootstrap-kubeconfig=${files.bootstrap}`,
    `--kubeconfig=${files.kubeconfig}`,
    `--client-ca-file=${files.ca}`,
    `--cert-dir=${path.join(files.rootDir, 'pki')}`,
    `--root-dir=${files.rootDir}`,
    `--hostname-override=${nodeName}`,
    ...kubeletFlags,
  ]
}

/** @returns the exit code */
async function untilSigned(join: NodeJoin, clock: Clock, signal: AbortSignal): Promise<number> {
  using limit = deadlineScope({ clock, ms: signedMs }, signal)
  await announce(join, clock, limit.signal)
  if (await exists(join.files.kubeconfig)) return exitCodes.ok
  throw new CommandError('timeout', `the kubelet has no certificate after ${signedMs / 1000} s`, {
    hint: `journalctl -u skiff-kubelet says why; when it has one, remove the token: rm ${join.files.bootstrap}`,
  })
}

/** The kubelet writes its kubeconfig when it has its certificate; the token is of no use from then on. */
async function announce({ files, nodeName }: NodeJoin, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await exists(files.kubeconfig))) await clock.sleep(500, signal).catch(() => {})
  if (signal.aborted) return
  await fs.rm(files.bootstrap, { force: true })
  done(`This machine is node ${nodeName}: its certificate is signed, and the token is removed from it`)
}
