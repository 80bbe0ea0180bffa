/** The metrics that every component begins with (L5): upstream's stabilities, what the process and its runtime use, and what it was built from. */
import type { Exposition } from '#base/exposition'
import type { MetricFamily } from '#base/metricFamily'
import { buildInfo, gitVersion, goPlatform, kubernetesMajor, kubernetesMinor } from '#base/version'
import { createPrometheusMetrics, type PrometheusMetrics } from './prometheus.ts'

export function createComponentMetrics(): PrometheusMetrics {
  const metrics = createPrometheusMetrics()
  const { labels, ...info } = buildLabels()
  metrics.gauge({ ...info, labels: Object.keys(labels) }).set(1, labels)
  return metrics
}

/** The families of a scrape. The list of stabilities, and what reads the process and its runtime, are loaded with the first one. */
export async function componentFamilies(metrics: PrometheusMetrics): Promise<readonly MetricFamily[]> {
  if (!metrics.isDescribed) {
    const [{ documentedMetrics }, { addProcessMetrics }, { addRuntimeMetrics }] = await Promise.all([
      import('./documentedMetrics.ts'),
      import('./processMetrics.ts'),
      import('./runtimeMetrics.ts'),
    ])
    // Another scrape may have been faster.
    if (!metrics.isDescribed) {
      metrics.describe(documentedMetrics)
      addProcessMetrics(metrics)
      addRuntimeMetrics(metrics)
    }
  }
  return metrics.families()
}

/** A scrape in the format that the Accept header asks for. The formats are loaded with the first one. */
export async function scrapeComponent(metrics: PrometheusMetrics, accept: string | readonly string[] | undefined): Promise<Exposition> {
  const { exposition } = await import('#base/exposition')
  return exposition(await componentFamilies(metrics), accept)
}

/** Upstream: component-base/metrics/version.go. */
function buildLabels() {
  const labels = {
    major: kubernetesMajor,
    minor: kubernetesMinor,
    git_version: gitVersion,
    git_commit: buildInfo.gitCommit,
    git_tree_state: buildInfo.gitTreeState,
    build_date: buildInfo.buildDate,
    // The runtime, where upstream names Go.
    go_version: `node${process.versions.node}`,
    compiler: 'v8',
    platform: goPlatform(process.platform, process.arch),
  }
  return { name: 'kubernetes_build_info', help: 'The version of Kubernetes, and what built and runs this program.', labels }
}
