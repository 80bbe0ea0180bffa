/** The flags of encryption at rest (L5). Upstream: apiserver/pkg/server/options/etcd.go (v1.36). */
import { type EncryptionSettings, parseEncryptionConfiguration } from '#apiserver/encryption/encryption'
import { flag, text, UsageError } from './flags.ts'
import { usable } from './namedFiles.ts'
import { optionGroup } from './optionGroup.ts'

export const encryption = optionGroup({
  name: 'Encryption',
  flags: {
    'encryption-provider-config': text('A file of kind EncryptionConfiguration: which resources are stored encrypted, and how; none: nothing is'),
    'encryption-provider-config-automatic-reload': flag('Changes of the file named by --encryption-provider-config take effect without a restart'),
  },
  async settings(values, context): Promise<EncryptionSettings | undefined> {
    const { 'encryption-provider-config': path, 'encryption-provider-config-automatic-reload': reload } = values
    if (path === '') {
      if (reload) throw new UsageError(['--encryption-provider-config-automatic-reload must be set with --encryption-provider-config'])
      return undefined
    }
    const file = context.file(path)
    const content = await file.read().catch((error: Error) => {
      const where = JSON.stringify(path)
      throw new UsageError([
        `error while parsing file: error while loading file: error reading encryption provider configuration file ${where}: ${error.message}`,
      ])
    })
    return { file, content, configuration: usable(() => parseEncryptionConfiguration(path, content, reload)), reload }
  },
})
