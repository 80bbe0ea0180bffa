import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpOptions } from '#cli/clusterManager'
import type { ClusterState } from './clusterState.ts'
import { refuseChanges } from './refuseChanges.ts'

const nothing: UpOptions = {
  nodes: undefined,
  simulatedNodes: undefined,
  runtime: undefined,
  port: undefined,
  podCidr: undefined,
  serviceCidr: undefined,
  ipFamilies: undefined,
  podNetwork: undefined,
  publish: undefined,
  verbosity: undefined,
  logMaxSize: undefined,
  logMaxFiles: undefined,
  history: undefined,
  historySize: undefined,
  backup: undefined,
  autostart: undefined,
  ingress: undefined,
  proxyMode: undefined,
  etcd: undefined,
  advertiseAddress: undefined,
  controlPlaneEndpoint: undefined,
  certNames: undefined,
  controlPlanes: undefined,
  layout: undefined,
  apiServerArgs: undefined,
  controllerManagerArgs: undefined,
  schedulerArgs: undefined,
}
/** Made with `--nodes 2` where containerd could not run. */
const state: ClusterState = {
  name: 'a',
  id: '0000',
  port: 40_000,
  nodes: [],
  simulatedNodes: ['a-sim-1', 'a-sim-2'],
  verbosity: 2,
  asked: { nodes: 2, simulatedNodes: 0, runtime: 'simulated' },
}

const same: { name: string; options: Partial<UpOptions> }[] = [
  { name: 'nothing', options: {} },
  { name: 'what it was made with', options: { nodes: 2, simulatedNodes: 0, runtime: 'simulated', port: 40_000, controlPlanes: 1 } },
  { name: 'any runtime and any port', options: { runtime: 'auto', port: 0 } },
  { name: 'another verbosity, which is the next start’s', options: { verbosity: 9 } },
]
for (const { name, options } of same) test(`a cluster that is asked for ${name} stays as it is`, () => refuseChanges(state, { ...nothing, ...options }))

const others: { options: Partial<UpOptions>; text: string }[] = [
  { options: { nodes: 3 }, text: '--nodes 3 was asked for, it was made with 2' },
  { options: { simulatedNodes: 2 }, text: '--simulated-nodes 2 was asked for, it was made with 0' },
  { options: { controlPlanes: 3 }, text: '--control-planes 3 was asked for, it was made with 1' },
  { options: { podNetwork: 'vxlan' }, text: '--pod-network vxlan was asked for, it was made with host-gw' },
  { options: { publish: [{ protocol: 'TCP', port: 8080, nodePort: 80 }] }, text: '--publish 8080:80 was asked for, it was made with none' },
  { options: { ipFamilies: 'ipv4,ipv6' }, text: '--ip-families ipv4,ipv6 was asked for, it was made with ipv4' },
  { options: { ipFamilies: 'ipv6' }, text: '--ip-families ipv6 was asked for, it was made with ipv4' },
  { options: { runtime: 'containerd' }, text: '--runtime containerd was asked for, it was made with simulated' },
  {
    options: { port: 1, nodes: 1 },
    text: '--nodes 1 was asked for, it was made with 2, --port 1 was asked for, it was made with 40000',
  },
]
for (const { options, text } of others) {
  test(`a cluster that is asked for ${JSON.stringify(options)} says that it cannot be changed`, () => {
    assert.throws(() => refuseChanges(state, { ...nothing, ...options }), {
      exit: 'alreadyExists',
      message: `cluster "a" is there and cannot be changed: ${text}`,
      hint: 'leave the flags out to start it as it is, name another cluster, or delete this one first: skiff delete a',
    })
  })
}
