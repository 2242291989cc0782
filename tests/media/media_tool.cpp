// The media/ folder as a program, for the tests in this folder: one JSON request per line on stdin,
// one JSON answer per line on stdout. Pixels go to the file `out`. Not part of the product.
//
//   {"op": "decode", "path": P, "out": O}            -> {"width": W, "height": H}
//   {"op": "size", "path": P}                        -> {"width": W, "height": H}
//   {"op": "resize", "path": P (RGB bytes), "from": [W, H], "to": [W, H], "out": O} -> {}
//   {"op": "encoder_size", "width": W, "height": H, "frames": N, "budget": [min, max]}
//                                                    -> {"width": W, "height": H}
//   any of them                                      -> {"error": code, "message": M}
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "media/encoder_size.h"
#include "media/image_decoder.h"
#include "media/resize.h"

namespace {

namespace json = boost::json;

json::object to_json(const sluice::Error& error) {
  return {{"error", sluice::to_string(error.code)}, {"message", error.message}};
}

json::object to_json(const sluice::Result<sluice::PictureSize>& size) {
  return size ? json::object{{"width", size->width}, {"height", size->height}}
              : to_json(size.error());
}

std::string read_file(const json::value& path) {
  std::ifstream file(std::string(path.as_string()), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const json::value& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream file(std::string(path.as_string()), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

sluice::PictureSize to_size(const json::value& pair) {
  return {.width = pair.at(0).as_int64(), .height = pair.at(1).as_int64()};
}

json::object decode(const json::object& request) {
  const std::string bytes = read_file(request.at("path"));
  const auto picture =
      sluice::decode_picture(std::as_bytes(std::span(bytes)), sluice::PictureLimits{});
  if (!picture) {
    return to_json(picture.error());
  }
  write_file(request.at("out"), picture->pixels);
  return to_json(sluice::Result<sluice::PictureSize>(picture->size));
}

json::object resize(const json::object& request) {
  const std::string bytes = read_file(request.at("path"));
  const sluice::Picture source{.size = to_size(request.at("from")),
                               .pixels = {bytes.begin(), bytes.end()}};
  write_file(request.at("out"), sluice::resize(source, to_size(request.at("to"))).pixels);
  return {};
}

json::object encoder_size(const json::object& request) {
  const sluice::PictureSize size{.width = request.at("width").as_int64(),
                                 .height = request.at("height").as_int64()};
  const sluice::PixelBudget budget{.pixels_min = request.at("budget").at(0).as_int64(),
                                   .pixels_max = request.at("budget").at(1).as_int64()};
  const std::int64_t frames = request.at("frames").as_int64();
  return to_json(frames == 1 ? sluice::encoder_size(size, budget)
                             : sluice::encoder_frame_size(size, frames, budget));
}

json::object answer(const json::object& request) {
  const std::string_view op = request.at("op").as_string();
  if (op == "decode") {
    return decode(request);
  }
  if (op == "size") {
    const std::string bytes = read_file(request.at("path"));
    return to_json(
        sluice::read_picture_size(std::as_bytes(std::span(bytes)), sluice::PictureLimits{}));
  }
  if (op == "resize") {
    return resize(request);
  }
  return encoder_size(request);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << json::serialize(answer(json::parse(line).as_object())) << std::endl;
  }
}
