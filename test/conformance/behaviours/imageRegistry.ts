/** A registry under a unique name, from which one node pulls: a pod writes the name into the hosts configuration of the node's containerd. */
import { networkInterfaces } from 'node:os'
import { nodeAddress } from '#api/helpers/nodes'
import { nodes } from '#client/builtIn'
import { type Registry, startRegistry } from '../../support/registry.ts'
import type { BehaviourContext } from './context.ts'

export interface NodeRegistry {
  readonly registry: Registry
  /** The registry's name in image references. */
  readonly name: string
  readonly nodeName: string
}

export async function registryFor(context: BehaviourContext): Promise<NodeRegistry> {
  const [nodeName = ''] = context.nodes
  const registry = await startRegistry({ host: await hostAddress(context, nodeName) })
  context.cleanUp(() => registry.close())
  const name = `${context.unique('registry')}.test`
  const url = `http://${registry.address}`
  const lines = [`server = "${url}"`, `[host."${url}"]`, 'capabilities = ["pull", "resolve"]']
  const write = `mkdir -p /certs/${name} && printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} > /certs/${name}/hosts.toml`
  const pod = (script: string) => ({
    script,
    container: { volumeMounts: [{ name: 'certs', mountPath: '/certs' }] },
    spec: { nodeName, volumes: [{ name: 'certs', hostPath: { path: '/etc/containerd/certs.d', type: 'DirectoryOrCreate' } }] },
  })
  await context.runPod(pod(write))
  return { registry, name, nodeName }
}

/** The host's own address in the nodes' network. */
async function hostAddress(context: BehaviourContext, nodeName: string): Promise<string> {
  const address = nodeAddress(await context.get(nodes, nodeName), 'InternalIP') ?? ''
  const network = address.slice(0, address.lastIndexOf('.') + 1)
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const found = own.find((candidate) => candidate.address.startsWith(network))
  if (!found) throw new Error(`the host has no address in the network of node ${nodeName} (${address})`)
  return found.address
}
