/**
 * The pages of a kubelet's port that every component has (L5): /statusz, /flagz, and profiles of the process. The API server's own pages do the work;
 * the kubelet has admitted whoever asks. Upstream: kubelet/server/server.go InstallStatusz, InstallFlagz, InstallProfilingHandler (v1.36).
 */
import type { IncomingMessage } from 'node:http'
import { toYaml } from '#api/machinery/yaml'
import type { Answer } from '#apiserver/answer'
import { profiling } from '#apiserver/endpoints/profiling'
import { zpages } from '#apiserver/endpoints/zpages'
import type { ServerRequest } from '#apiserver/request'
import type { Clock } from '#base/clock'
import type { Page } from '#kubelet/server/routes'

export interface KubeletPagesParts {
  readonly clock: Clock
  /** By name, as /flagz shows them. */
  readonly flags: Readonly<Record<string, string>>
  readonly version: { readonly gitVersion: string; readonly emulationMajor?: string | undefined; readonly emulationMinor?: string | undefined }
}

export function kubeletPages({ clock, flags, version }: KubeletPagesParts): (request: IncomingMessage) => Promise<Page | undefined> {
  const profiles = profiling(clock)
  const pages = zpages({
    component: 'kubelet',
    clock,
    startedMs: clock.now(),
    binaryVersion: version.gitVersion.replace(/^v/, ''),
    emulationVersion: `${version.emulationMajor}.${version.emulationMinor}`,
    runtimeVersion: `node ${process.version}`,
    paths: () => ['/configz', '/debug/pprof', '/flagz', '/healthz', '/metrics', '/pods', '/stats/summary', '/statusz'],
    flags,
  })
  return async (incoming) => {
    const url = new URL(incoming.url ?? '/', 'https://kubelet')
    const request = { path: url.pathname, query: url.searchParams, headers: incoming.headers, warnings: [] } as unknown as ServerRequest
    const answer = pages(request) ?? (await profiles(request))
    return answer && pageOf(answer)
  }
}

function pageOf(answer: Answer): Page | undefined {
  if (answer.type === 'bytes') return { type: answer.contentType, body: answer.bytes, code: answer.status }
  if (answer.type !== 'value') return undefined
  const isYaml = answer.encoding === 'yaml'
  return { type: isYaml ? 'application/yaml' : 'json', body: isYaml ? toYaml(answer.value) : JSON.stringify(answer.value), code: answer.status }
}
