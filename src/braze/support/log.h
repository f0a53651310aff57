// Lines on stderr by topic: BRAZE_LOGS=graph_breaks,perf. Ask first, so that no text is built for nothing.
//
//   if (support::logs("graph_breaks")) support::log("graph_breaks", support::format("{}:{}: {}", file, line, reason));
#pragma once

#include <string_view>

namespace braze::support {

bool logs(std::string_view topic);
/// Writes `[braze topic] text` in one piece, so that lines of several threads do not mix.
void log(std::string_view topic, std::string_view text);
/// A warning for the user, printed once per text and process.
void warn_once(std::string_view text);

}  // namespace braze::support
