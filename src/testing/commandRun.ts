/** Runs the commands of the command line whole, for tests (testing): against a manager of clusters and snapshots that record what they are asked. */
import { fail } from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Command } from 'commander'
import type { PolicyExplanation } from '#api/debug/networkPolicy'
import { VirtualClock } from '#base/virtualClock'
import type { ClusterManager, ClusterStatus } from '#cli/clusterManager'
import type { CommandContext } from '#cli/command'
import { registerCommands } from '#cli/program'
import { makeDirectory } from '#host/files'

export const running: ClusterStatus = {
  name: 'a',
  server: 'https://127.0.0.1:40000',
  running: true,
  supervised: true,
  ready: true,
  nodes: [{ name: 'a-node-1', ready: true, runtime: 'containerd', address: '10.88.1.10' }],
  servers: [],
  etcd: [],
  pids: [{ role: 'server', pid: 42 }],
  restarts: [],
  freeBytes: 2 ** 30,
  directory: '/var/lib/skiff/clusters/a',
}

const snapshotStatus = { hash: 0xf5d4be8e, revision: 7, totalKey: 3, totalSize: 5 * 2 ** 20, version: '3.6.0' }

const policyExplanation: PolicyExplanation = {
  pod: 'a/web\nallowed: a/x',
  addresses: ['10.244.0.5'],
  node: undefined,
  hostNetwork: false,
  selectedBy: { ingress: [{ policy: 'a/front', rules: ['from everywhere: TCP 80'] }], egress: [] },
  verdicts: [],
}

type NodeGroupMethods = Pick<ClusterManager, 'createNodeGroup' | 'scaleNodeGroup' | 'deleteNodeGroup' | 'nodeGroups'>

function recordedNodeGroups(calls: string[]): NodeGroupMethods {
  return {
    createNodeGroup: async (name, group) => void calls.push(`create group of ${name} ${JSON.stringify(group)}`),
    scaleNodeGroup: async (name, group, size) => void calls.push(`scale ${group} of ${name} to ${size}`),
    deleteNodeGroup: async (name, group) => void calls.push(`delete ${group} of ${name}`),
    nodeGroups: async () => [{ name: 'small', min: 0, max: 5, size: 2, ready: 1, nodes: ['small-1', 'small-2'] }],
  }
}

type MemberChanges = 'addEtcdMember' | 'promoteEtcdMember' | 'removeEtcdMember' | 'moveEtcdLeader' | 'defragmentEtcd'

function etcdMembers(calls: string[]): Pick<ClusterManager, MemberChanges> {
  return {
    addEtcdMember: async (name, { learner }) => {
      calls.push(`add ${name}${learner ? ' learner' : ''}`)
      return 'etcd-4'
    },
    promoteEtcdMember: async (name, member) => void calls.push(`promote ${name} ${member}`),
    removeEtcdMember: async (name, member) => void calls.push(`remove ${name} ${member}`),
    moveEtcdLeader: async (name, member) => void calls.push(`lead ${name} ${member}`),
    defragmentEtcd: async (name, member) => void calls.push(`defragment ${name} ${member ?? 'all'}`),
  }
}

/** Runs a command line against a manager that records what it is asked. @param before the kubeconfig that is there */
export async function runCommand(words: string[], overrides: Partial<ClusterManager> = {}, names: string[] = ['a'], before = '') {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cli-'))
  if (before !== '') {
    await makeDirectory(path.join(home, '.kube'))
    await fs.writeFile(path.join(home, '.kube/config'), before)
  }
  const calls: string[] = []
  const clusters: ClusterManager = {
    names: async () => names,
    exists: async (name) => names.includes(name),
    isGone: async (directory) => path.basename(directory) === 'gone',
    up: async (name, options) => {
      calls.push(`up ${name} ${JSON.stringify(options)}`)
      return { created: !names.includes(name), status: { ...running, name } }
    },
    stop: async (name) => void calls.push(`stop ${name}`),
    delete: async (name, _progress, dryRun) => {
      calls.push(`delete ${name}${dryRun ? ' dry' : ''}`)
      return { removed: ['bridge skiff-0000'], left: [] }
    },
    prune: async (_progress, dryRun) => {
      calls.push(`prune${dryRun ? ' dry' : ''}`)
      return { removed: ['interface skiff-0000'], left: [] }
    },
    status: async (name) => ({ ...running, name }),
    addNodes: async (name, count, like) => void calls.push(`add ${count} to ${name} ${JSON.stringify(like)}`),
    removeNodes: async (name, count) => void calls.push(`remove ${count} of ${name}`),
    ...recordedNodeGroups(calls),
    unit: async (name) => `[Unit]\nDescription=${name}\n`,
    installUnit: async (name) => {
      calls.push(`install ${name}`)
      return 'skiff-0000.service'
    },
    removeUnit: async (name) => {
      calls.push(`uninstall ${name}`)
      return true
    },
    ask: async () => undefined,
    logFiles: async () => [],
    kubeconfig: async (name) => ({ name: `skiff-${name}`, server: running.server, ca: 'CA', clientCert: 'C', clientKey: 'K' }),
    rememberKubeconfig: async (name, file, previous) => void calls.push(`remember ${name} ${path.relative(home, file)} ${previous}`.trim()),
    kubeconfigs: async () => [],
    setAddon: async (name, addon, enabled) => {
      calls.push(`${enabled ? 'enable' : 'disable'} ${addon} of ${name}`)
      return enabled
    },
    addons: async () => [{ addon: 'ingress', enabled: true }],
    certificates: async () => [],
    uploadCertificates: async (name, key) => void calls.push(`upload ${name} ${key}`),
    renewCertificates: async (name) => void calls.push(`renew ${name}`),
    etcdMembers: async () => [
      { id: 'c1', name: 'etcd-1', role: 'leader', url: 'https://127.0.0.1:41000', version: '3.4.23', dbBytes: 20 * 2 ** 20, dbBytesInUse: 5 * 2 ** 20 },
      { id: 'c2', name: 'etcd-2', role: 'unknown', url: 'https://127.0.0.1:41002', version: '', dbBytes: undefined, dbBytesInUse: undefined },
    ],
    ...etcdMembers(calls),
    loadImages: async (name, files) => {
      calls.push(`load ${name} ${files.length}`)
      return [{ node: 'a-node-1', names: ['docker.io/library/web:1'] }]
    },
    images: async () => [],
    ...overrides,
  }
  const [stdout, stderr, interruptions]: [string[], string[], string[]] = [[], [], []]
  const context: CommandContext = {
    clusters,
    snapshots: {
      save: async (name, file) => {
        calls.push(`save ${name} ${file}`)
        return { bytes: 3 * 2 ** 20 }
      },
      status: async () => snapshotStatus,
      diff: async () => ({ added: ['/registry/b'], removed: ['/registry/a'], changed: ['/registry/c'] }),
      restore: async (file, name, options) => {
        calls.push(`restore ${name} ${file} ${JSON.stringify(options)}`)
        return { ...snapshotStatus, backup: '/x/data.mdb.bak', restoredRevision: 7 + options.bumpRevision }
      },
    },
    bundles: { objectFile: fail, serve: fail, serveStopped: fail },
    explainPolicies: async ({ pod }) => {
      calls.push(`explain ${pod.metadata.name}`)
      return policyExplanation
    },
    componentFlags: async () => ({
      'kube-apiserver': new Set(['audit-log-path', 'max-requests-inflight']),
      'kube-controller-manager': new Set(['leader-elect']),
      'kube-scheduler': new Set(['leader-elect']),
    }),
    clock: new VirtualClock(),
    exec: { run: async () => ({ code: -1, stdout: '', stderr: '', timedOut: false }), spawn: fail },
    env: {},
    home,
    isRoot: true,
    platform: 'linux',
    availableMemory: () => 2 ** 30,
    local: {
      run: fail,
      plugins: { interactive: false, run: fail },
      certificate: fail,
      pageFolder: home,
      directory: () => home,
      print: async () => fail(),
      exitWith: () => {},
    },
    ifInterrupted: (remains) => void interruptions.push(remains),
    stdout: { write: (text) => void stdout.push(text), isTTY: false },
    stderr: { write: (text) => void stderr.push(text), isTTY: false },
  }
  const program = new Command('skiff').enablePositionalOptions().exitOverride()
  registerCommands(program, context)
  let error: unknown
  await program.parseAsync(['node', 'skiff', ...words]).catch((caught) => {
    error = caught
  })
  const kubeconfig = await fs.readFile(path.join(home, '.kube/config'), 'utf8').catch(() => '')
  await fs.rm(home, { recursive: true, force: true })
  return { calls, stdout: stdout.join(''), stderr: stderr.join(''), error, kubeconfig, interruptions }
}
