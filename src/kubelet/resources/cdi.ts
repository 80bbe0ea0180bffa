/**
 * Applies the Container Device Interface where the runtime cannot (L3): finds a device in the specifications of a node and turns its edits into fields of CRI's
 * container configuration. Runtimes that know CDI get the devices' names instead. Specification: container-device-interface SPEC.md (1.0).
 */
import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Device, Mount } from '#grpc/criTypes'
import { listIfExists } from '#host/files'

interface ContainerEdits {
  readonly env?: readonly string[]
  readonly deviceNodes?: readonly { readonly path: string; readonly hostPath?: string; readonly permissions?: string }[]
  readonly mounts?: readonly { readonly hostPath: string; readonly containerPath: string; readonly options?: readonly string[] }[]
  readonly hooks?: readonly unknown[]
}

interface CdiSpec {
  readonly cdiVersion: string
  readonly kind: string
  readonly devices: readonly { readonly name: string; readonly containerEdits?: ContainerEdits }[]
  readonly containerEdits?: ContainerEdits
}

export interface CdiEdits {
  readonly envs: { key: string; value: string }[]
  readonly devices: Device[]
  readonly mounts: Mount[]
}

/** Later directories win. */
export const cdiDirectories = ['/etc/cdi', '/var/run/cdi']
const maxSpecBytes = 4 * 2 ** 20

async function readSpecs(path: (nodePath: string) => string): Promise<CdiSpec[]> {
  const specs: CdiSpec[] = []
  for (const directory of cdiDirectories) {
    for (const name of (await listIfExists(path(directory))).sort()) {
      if (!/\.(json|yaml)$/.test(name)) continue
      const file = path(join(directory, name))
      const stats = await lstat(file)
      if (!stats.isFile() || stats.size > maxSpecBytes) continue
      const { parseYaml } = await import('#api/machinery/yaml')
      const spec = parseYaml(await readFile(file, 'utf8')) as Partial<CdiSpec> | undefined
      // The devices of a broken specification are not found.
      if (typeof spec?.kind === 'string' && Array.isArray(spec.devices)) specs.push(spec as CdiSpec)
    }
  }
  return specs
}

function add(edits: CdiEdits, more: ContainerEdits | undefined, device: string): void {
  if (more?.hooks?.length) {
    throw new Error(`CDI device ${device} has hooks, which this node's container runtime cannot run: it needs containerd 1.7 or later with enable_cdi`)
  }
  for (const entry of more?.env ?? []) {
    const at = entry.indexOf('=')
    edits.envs.push(at < 0 ? { key: entry, value: '' } : { key: entry.slice(0, at), value: entry.slice(at + 1) })
  }
  for (const node of more?.deviceNodes ?? []) {
    edits.devices.push({ containerPath: node.path, hostPath: node.hostPath || node.path, permissions: node.permissions || 'rwm' })
  }
  for (const mount of more?.mounts ?? []) {
    edits.mounts.push({ containerPath: mount.containerPath, hostPath: mount.hostPath, readonly: mount.options?.includes('ro') ?? false })
  }
}

/**
 * @param devices `vendor.example/class=name`
 * @throws Error for devices that no specification knows, and edits that CRI cannot express
 */
export async function cdiEdits(devices: readonly string[], path: (nodePath: string) => string): Promise<CdiEdits> {
  const edits: CdiEdits = { envs: [], devices: [], mounts: [] }
  if (devices.length === 0) return edits
  const specs = await readSpecs(path)
  const whole = new Set<CdiSpec>()
  for (const name of devices) {
    const spec = specs.findLast(({ kind, devices: known }) => known.some((device) => `${kind}=${device.name}` === name))
    if (!spec) throw new Error(`unresolvable CDI devices ${name}: no specification in ${cdiDirectories.join(' or ')} has it`)
    add(edits, spec.devices.find((device) => `${spec.kind}=${device.name}` === name)?.containerEdits, name)
    if (!whole.has(spec)) add(edits, spec.containerEdits, name)
    whole.add(spec)
  }
  return edits
}

/** containerd knows CDI since 1.7; whether it is switched on there is its own configuration's business. */
export function runtimeKnowsCdi({ runtimeName, runtimeVersion }: { readonly runtimeName: string; readonly runtimeVersion: string }): boolean {
  if (runtimeName !== 'containerd') return true
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(runtimeVersion) ?? []
  return Number(major) > 1 || Number(minor) >= 7
}
