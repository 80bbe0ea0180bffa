/**
 * Reads pages of kubelets for components of this process (L3), with the server's own credentials and over the connections that logs and exec take.
 * Upstream: pkg/kubelet/client.
 */
import { sendRequest } from '../backends/connect.ts'
import { httpsAgent } from '../backends/reach.ts'
import { readBody } from '../backends/readBody.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import { type NodeReach, nodeBackend } from './subresources/node.ts'

export interface KubeletPage {
  readonly status: number
  readonly body: Buffer
}

export interface KubeletClient {
  /** @param path with its query, escaped. @throws Error when the kubelet does not answer, or with more than `limitBytes` */
  get(nodeName: string, path: string, options: { readonly limitBytes: number; readonly signal: AbortSignal }): Promise<KubeletPage>
}

/** A connection is kept until the next of the samples that are taken every 15 seconds. */
const idleTimeoutMs = 60_000

export function createKubeletClient(reader: ObjectReader, reach: NodeReach): KubeletClient {
  const agent = httpsAgent(reach.reach, { keepAlive: true, maxFreeSockets: 1, timeout: idleTimeoutMs })
  return {
    async get(nodeName, path, { limitBytes, signal }) {
      const backend = { ...nodeBackend(reader, nodeName, path, reach), agent }
      const response = await sendRequest({ method: 'GET', path, headers: {}, remoteAddress: '', cancellation: { signal } }, backend)
      return { status: response.statusCode ?? 0, body: await readBody(response, limitBytes) }
    },
  }
}
