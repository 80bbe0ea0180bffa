/** The flags of kube-scheduler alone (L5). Upstream: cmd/kube-scheduler/app/options (v1.36). */
import path from 'node:path'
import { decodeSchedulerConfiguration, defaultSchedulerConfiguration, type KubeSchedulerConfiguration } from '#scheduler/config/configuration'
import type { PluginDefinition } from '#scheduler/framework/plugin'
import { loadPluginFiles } from '#scheduler/pluginFiles'
import { text, UsageError } from '../../apiserver/options/flags.ts'
import { readNamed, usable } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export interface SchedulerSettings {
  readonly configuration: KubeSchedulerConfiguration
  /** Loaded from the configuration's plugin files. */
  readonly plugins: readonly PluginDefinition[]
  /** --config was given: the file overrides the matching flags, except those of leader election. */
  readonly isFromFile: boolean
  /** About flags without effect. */
  readonly warnings: readonly string[]
}

export const schedulerOptions = optionGroup({
  name: 'Misc',
  flags: {
    config: text('A file of kind KubeSchedulerConfiguration; the flags for the connection and profiles are then ignored'),
    'scheduling-queue-size': text('Accepted with a warning, without effect: the queue has no limit'),
  },
  async settings({ config: file, 'scheduling-queue-size': queueSize }, context): Promise<SchedulerSettings> {
    const warnings = queueSize === '' ? [] : ['--scheduling-queue-size has no effect: the queue holds every pod that waits']
    const content = await readNamed(file, context)
    if (content === undefined) return { configuration: defaultSchedulerConfiguration, plugins: [], isFromFile: false, warnings }
    const configuration = usable(() => decodeSchedulerConfiguration(content))
    const plugins = await loadPluginFiles(configuration.pluginFiles, path.dirname(path.resolve(file))).catch((error: Error) => {
      throw new UsageError([error.message])
    })
    return { configuration, plugins, isFromFile: true, warnings }
  },
})
