/**
 * A CSI driver in this process, for tests of callers of drivers: the host path driver or one that the test describes. It listens on a socket in a directory, records
 * every call to its node service, and registers in plugins_registry as drivers do.
 */
import { join } from 'node:path'
import { hostPathDriverName, openHostPathDriver } from '#csi/hostpath/driver'
import type { CsiDriver, CsiNode } from '#csi/server/csiTypes'
import { serveRegistration } from '#csi/server/registration'
import { serveCsi } from '#csi/server/serveCsi'
import { createExec } from '#host/exec'
import { makeDirectory } from '#host/files'

export { CsiError } from '#csi/server/csiTypes'
export type { CsiDriver, CsiNode }

export interface RecordedCall {
  readonly method: string
  readonly request: Readonly<Record<string, unknown>>
}

export interface ServedDriver {
  readonly driver: CsiDriver
  readonly socket: string
  /** The calls to the node service. */
  readonly calls: RecordedCall[]
  /** Calls under way fail, and this driver answers the next ones. */
  restart(driver: CsiDriver): Promise<void>
  close(): Promise<void>
}

/** The host path driver with its state in the directory. */
export function openTestDriver(directory: string, nodeId = 'node-1'): Promise<CsiDriver> {
  return openHostPathDriver({ directory: join(directory, 'state'), exec: createExec(), nodeId, capacityBytes: undefined, now: () => 0 })
}

/** A driver whose node service has these methods and nothing else. */
export function nodeDriver(node: Partial<CsiNode>, more: Partial<CsiDriver> = {}): CsiDriver {
  const nothing = () => {}
  const complete = { nodeGetInfo: () => ({ nodeId: 'node-1' }), nodePublishVolume: nothing, nodeUnpublishVolume: nothing, ...node }
  return { name: hostPathDriverName, version: '1', node: complete, ...more }
}

/** Serves the driver at `directory`/csi.sock. The methods of `driver.node` decide the capabilities. */
export async function serveTestDriver(directory: string, driver: CsiDriver): Promise<ServedDriver> {
  await makeDirectory(directory)
  const calls: RecordedCall[] = []
  const socket = join(directory, 'csi.sock')
  const serve = (one: CsiDriver) => serveCsi({ ...one, ...(one.node ? { node: recorded(one.node, calls) } : {}) }, `unix://${socket}`)
  let [current, server] = [driver, await serve(driver)]
  return {
    get driver() {
      return current
    },
    socket,
    calls,
    restart: async (next) => {
      await server.close()
      server = await serve(next)
      current = next
    },
    close: () => server.close(),
  }
}

function recorded(node: CsiNode, calls: RecordedCall[]): CsiNode {
  const methods = Object.entries(node).map(([method, answer]) => {
    const record = (request: RecordedCall['request']) => {
      calls.push({ method, request })
      return answer(request)
    }
    return [method, record] as const
  })
  return Object.fromEntries(methods) as unknown as CsiNode
}

/** What a registrar sends to the kubelet; the socket is the one of the driver's service. */
export interface Introduced {
  readonly driver: Pick<CsiDriver, 'name'>
  readonly socket: string
}

export interface Registration {
  /** What the kubelet answered: '' when the driver is registered. */
  readonly answers: string[]
  close(): Promise<void>
}

/** What a driver's registrar does: it shows the driver to the kubelet that watches the directory. */
export async function introduceDriver(registry: string, { driver, socket }: Introduced, versions: readonly string[] = ['1.0.0']): Promise<Registration> {
  await makeDirectory(registry)
  const answers: string[] = []
  const info = { name: driver.name, endpoint: socket, versions }
  const server = await serveRegistration(join(registry, `${driver.name.split('.')[0]}.sock`), info, (error) => void answers.push(error))
  return { answers, close: () => server.close() }
}
