/** What a plugin in plugins_registry says of itself, and who registers it (L3). The watcher is resources/plugins/pluginWatcher.ts; handlers are where plugins are used. */

export interface PluginInfo {
  readonly type: string
  readonly name: string
  /** The socket of the plugin's service, as this process sees it. */
  readonly endpoint: string
  readonly supportedVersions: readonly string[]
}

/** Handles plugins of one type: 'DRAPlugin', 'CSIPlugin'. */
export interface PluginHandler {
  readonly type: string
  /** @throws Error that is sent to a plugin that cannot be used */
  register(plugin: PluginInfo): void | Promise<void>
  /** The plugin's socket is gone. Not called when the kubelet stops: the plugin is still there. */
  deregister(plugin: PluginInfo): void
}
