import { otherBehaviours } from './index.ts'
import { runBehaviours } from './run.ts'

runBehaviours('behave-other', otherBehaviours)
