/** The pages of a kubelet's port that every component has (L5). Upstream: kubelet/server/server.go InstallStatusz, InstallFlagz, InstallProfilingHandler (v1.36). */
import type { Clock } from '#base/clock'
import { lazyPages } from '../lazyPages.ts'

const paths = ['/configz', '/debug/pprof', '/flagz', '/healthz', '/metrics', '/pods', '/stats/summary', '/statusz']

/** @param parts flags by name, as /flagz shows them */
export function kubeletPages(parts: { readonly clock: Clock; readonly flags: Readonly<Record<string, string>> }): ReturnType<typeof lazyPages> {
  return lazyPages({ ...parts, component: 'kubelet', paths, profiling: true })
}
