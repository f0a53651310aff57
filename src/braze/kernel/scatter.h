// Scatters: each part of the launch owns a range of the result's first dimension and walks the whole space in order, so
// the result does not depend on the number of threads.
#pragma once

#include "braze/kernel/tile.h"

namespace braze::kernel {

Tiled tile_scatter(const schedule::Schedule& s, const schedule::Group& group, const support::Target& target);

}  // namespace braze::kernel
