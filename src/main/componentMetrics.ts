/** The metrics that every component begins with (L5): upstream's stabilities, what the process uses, and what it was built from. */
import { buildInfo, gitVersion, goPlatform, kubernetesMajor, kubernetesMinor } from '#base/version'
import { withProcessMetrics } from './processMetrics.ts'
import { createPrometheusMetrics, type PrometheusMetrics } from './prometheus.ts'

export function createComponentMetrics(): PrometheusMetrics {
  const metrics = withProcessMetrics(createPrometheusMetrics())
  const { labels, ...info } = buildLabels()
  metrics.gauge({ ...info, labels: Object.keys(labels) }).set(1, labels)
  return metrics
}

/** The text of a scrape. The list of stabilities is loaded with the first one. */
export async function metricsText(metrics: PrometheusMetrics): Promise<string> {
  if (!metrics.isDescribed) metrics.describe((await import('./documentedMetrics.ts')).documentedMetrics)
  return metrics.render()
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
