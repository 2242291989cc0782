// Pictures over HTTP, in every dialect: what the engine gets, what is counted, what is refused.
#include <gmock/gmock.h>

#include <boost/json/object.hpp>
#include <filesystem>
#include <fstream>

#include "server/media_loader.h"
#include "server/test_pictures.h"

namespace sluice {
namespace {

using testing::Test;

constexpr std::int64_t kSmall = 4;  // placeholders of 64 x 64 pixels
constexpr std::int64_t kWide = 6;   // of 96 x 64

std::string small_uri() {
  return data_uri(bmp_file(64, 64));
}

std::string chat_with(const std::string& parts) {
  return R"({"max_tokens":4,"messages":[{"role":"user","content":[)" + parts + "]}]}";
}

std::string image(const std::string& url, const std::string& more = "") {
  return R"({"type":"image_url","image_url":{"url":")" + url + "\"" + more + "}}";
}

const std::string kText = R"({"type":"text","text":"look"})";

class PicturesTest : public VisionServerTest {
 protected:
  PicturesTest() { engine_.set_script({.tokens = tokens("ok")}); }

  // The code and the field of an error.
  static std::string error_of(const TestReply& reply) {
    const boost::json::value body = reply.json();
    const auto& error = body.at("error").as_object();
    return std::to_string(reply.status) + " " + std::string(error.at("code").as_string()) + " " +
           std::string(error.at("param").as_string());
  }

  // "position:count" of the pictures of a request, whose placeholders must be there.
  static std::string spans_of(const Request& request) {
    std::string text;
    std::int64_t placed = 0;
    for (const VisionSpan& span : request.vision) {
      const std::int64_t count = span.input->token_count();
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(request.token_ids.at(static_cast<std::size_t>(span.position + i)),
                  placeholders().image);
      }
      placed += count;
      text +=
          (text.empty() ? "" : " ") + std::to_string(span.position) + ":" + std::to_string(count);
    }
    EXPECT_EQ(std::ranges::count(request.token_ids, placeholders().image), placed);
    return text;
  }
};

TEST_F(PicturesTest, TheEngineGetsThemAtTheirPlaces) {
  start();
  const TestReply reply =
      post("/v1/chat/completions", chat_with(image(small_uri()) + "," + kText + "," +
                                             image(data_uri(bmp_file(96, 64, 7), "image/png"))));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const boost::json::value usage = reply.json().at("usage");
  EXPECT_EQ(usage.at("prompt_tokens_details").at("image_tokens").as_int64(), kSmall + kWide);
  ASSERT_EQ(engine_.requests().size(), 1U);
  const Request request = engine_.requests().front();
  EXPECT_EQ(usage.at("prompt_tokens").as_int64(), std::ssize(request.token_ids));
  const std::int64_t first = std::ssize(tokens("<|im_start|>user\n")) + 1;
  const std::int64_t second = first + kSmall + 1 + std::ssize(tokens("look")) + 1;
  EXPECT_EQ(spans_of(request), std::to_string(first) + ":4 " + std::to_string(second) + ":6");
  EXPECT_EQ(request.vision[1].input->grid_rows, 4);
  EXPECT_EQ(request.vision[1].input->grid_columns, 6);
  EXPECT_EQ(request.vision[1].input->pixels.front(), 7);
  for (const std::int64_t position : request.stable_positions) {
    EXPECT_EQ(request.token_ids.at(static_cast<std::size_t>(position)),
              tokens("<|im_start|>").front());
  }
}

TEST_F(PicturesTest, EverySpellingAndDialect) {
  start();
  const std::string bare = base64(bmp_file(64, 64));
  const auto ask = [this](const std::string& path, const std::string& body) {
    const TestReply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << body.substr(0, 100) << reply.body;
    const auto requests = engine_.requests();
    EXPECT_EQ(requests.back().vision.size(), 1U) << body.substr(0, 100);
    return spans_of(requests.back());
  };
  const std::string plain = ask("/v1/chat/completions", chat_with(image(small_uri())));
  EXPECT_EQ(ask("/v1/chat/completions", chat_with(image(bare))), plain);
  EXPECT_EQ(ask("/v1/chat/completions",
                chat_with(R"({"type":"input_image","image_url":")" + small_uri() + "\"}")),
            plain);
  EXPECT_EQ(ask("/v1/responses", R"({"input":[{"role":"user","content":[{"type":"input_image",)"
                                 R"("image_url":")" +
                                     small_uri() + "\"}]}]}"),
            plain);
  const std::string block =
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":")" + bare +
      "\"}}";
  EXPECT_EQ(ask("/v1/messages",
                R"({"max_tokens":4,"messages":[{"role":"user","content":[)" + block + "]}]}"),
            plain);
  const std::string result =
      R"({"max_tokens":4,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[)"
      R"({"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[)"
      R"({"type":"tool_result","tool_use_id":"toolu_1","content":[)" +
      block + "]}]}]}";
  EXPECT_NE(ask("/v1/messages", result), "");
  const std::string output =
      R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
      R"({"type":"function_call_output","call_id":"c","output":[{"type":"input_image",)"
      R"("image_url":")" +
      small_uri() + "\"}]}]}";
  EXPECT_NE(ask("/v1/responses", output), "");
}

TEST_F(PicturesTest, CountsAgreeWithPrompts) {
  start();
  const std::string block =
      R"({"type":"image","source":{"type":"base64","media_type":"image/bmp","data":")" +
      base64(bmp_file(96, 64)) + "\"}}";
  const std::string body =
      R"({"max_tokens":4,"messages":[{"role":"user","content":[)" + kText + "," + block + "]}]}";
  ASSERT_EQ(post("/v1/messages", body).status, 200);
  const auto count = post("/v1/messages/count_tokens", body).json().at("input_tokens");
  EXPECT_EQ(count.as_int64(), std::ssize(engine_.requests().back().token_ids));
  const TestReply tokenized = post("/tokenize", chat_with(kText + "," + image(small_uri())));
  ASSERT_EQ(post("/v1/chat/completions", chat_with(kText + "," + image(small_uri()))).status, 200);
  EXPECT_EQ(tokenized.json().at("count").as_int64(),
            std::ssize(engine_.requests().back().token_ids));
}

TEST_F(PicturesTest, FramesOfAVideoComeWithTheirTimes) {
  start();
  std::string frames;
  for (int i = 0; i < 5; ++i) {
    frames += (i > 0 ? ",\"" : "\"") +
              data_uri(bmp_file(64, 64, static_cast<unsigned char>(10 * i))) + "\"";
  }
  const std::string body =
      chat_with(kText + R"(,{"type":"video","fps":2,"video":[)" + frames + "]}");
  const TestReply rendered = post("/apply-template", body);
  ASSERT_EQ(rendered.status, 200) << rendered.body;
  const std::string group = "<|vision_start|><|video_pad|><|vision_end|>";
  EXPECT_NE(std::string(rendered.json().at("prompt").as_string())
                .find("look<0.2 seconds>" + group + "<1.2 seconds>" + group + "<2.0 seconds>" +
                      group + "<|im_end|>"),
            std::string::npos)
      << rendered.body;
  const TestReply reply = post("/v1/chat/completions", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json().at("usage").at("prompt_tokens_details").at("image_tokens").as_int64(),
            3 * kSmall);
  const Request request = engine_.requests().back();
  ASSERT_EQ(request.vision.size(), 3U);
  for (const VisionSpan& span : request.vision) {
    EXPECT_EQ(span.input->frame_count, 2);
    EXPECT_EQ(request.token_ids.at(static_cast<std::size_t>(span.position)), placeholders().video);
  }
  EXPECT_EQ(request.vision[1].input->pixels.front(), 20);
  EXPECT_EQ(request.vision[1].input->pixels.back(), 30);
  EXPECT_EQ(request.vision[2].input->pixels.back(), 40);  // the last frame stands for two
}

TEST_F(PicturesTest, VideosThatAreNoneNameTheField) {
  config_.media.list_pixels_max = 10'000;
  start();
  const std::string at = "messages[0].content[0].video";
  const auto video_error = [this](const std::string& video) {
    return error_of(
        post("/v1/chat/completions", chat_with(R"({"type":"video","video":)" + video + "}")));
  };
  EXPECT_EQ(video_error("\"" + data_uri("no video") + "\""), "400 invalid_image " + at);
  EXPECT_EQ(video_error("[\"" + small_uri() + "\",\"" + data_uri(bmp_file(96, 64)) + "\"]"),
            "400 invalid_image " + at);
  EXPECT_EQ(
      video_error("[\"" + small_uri() + "\",\"" + small_uri() + "\",\"" + small_uri() + "\"]"),
      "400 image_too_large " + at);
}

TEST_F(PicturesTest, SizesFollowTheRequestInsideTheLimitsOfTheModel) {
  start();
  const auto count = [this](const std::string& part) {
    EXPECT_EQ(post("/v1/chat/completions", chat_with(part)).status, 200) << part.substr(0, 80);
    return engine_.requests().back().vision.at(0).input->token_count();
  };
  const std::string large = data_uri(bmp_file(1024, 1024));
  const auto limited = [](const std::string& url, const std::string& limits) {
    return R"({"type":"image","image":")" + url + "\"," + limits + "}";
  };
  EXPECT_EQ(count(image(large)), 256);
  EXPECT_EQ(count(image(large, R"(,"detail":"low")")), 256);
  EXPECT_EQ(count(limited(large, R"("max_pixels":4096)")), 4);
  EXPECT_EQ(count(limited(large, R"("max_pixels":1)")), 1);
  EXPECT_EQ(count(limited(large, R"("max_pixels":100000000)")), 256);
  EXPECT_EQ(count(limited(small_uri(), R"("min_pixels":16384)")), 16);
  EXPECT_EQ(count(limited(small_uri(), R"("min_pixels":100000000)")), 256);
}

TEST_F(PicturesTest, ArePinnedWithTheirPrompt) {
  start();
  const auto pinned = [this](std::uint32_t width, std::size_t tokens) {
    const TestReply reply =
        post("/v1/cache/pins", R"({"messages":[{"role":"user","content":[)" + kText + "," +
                                   image(data_uri(bmp_file(width, 480))) + "," +
                                   image(small_uri()) + "]}]}");
    EXPECT_EQ(reply.status, 201) << reply.body;
    const Request request = engine_.requests().back();
    EXPECT_TRUE(request.pin);
    EXPECT_EQ(request.token_ids.size(), tokens);
    return request;
  };
  const Request both = pinned(480, 192);  // 225 of the first picture: the prompt ends inside it
  ASSERT_EQ(both.vision.size(), 1U);
  EXPECT_EQ(both.vision[0].input->token_count(), 225);
  EXPECT_EQ(both.token_ids.back(), placeholders().image);
  const Request second = pinned(128, 64);  // 60 of the first one, 4 of the second
  ASSERT_GE(second.vision.size(), 1U);
  EXPECT_EQ(error_of(post("/v1/cache/pins", R"({"messages":[{"role":"user","content":[)" +
                                                image("data:image/png;base64,AAAA") + "]}]}")),
            "400 invalid_image messages[0].content[0].image_url.url");
}

// `min_pixels` near the model's largest size: what is enlarged is rounded up.
TEST_F(PicturesTest, AreNotEnlargedBeyondWhatTheEncoderHasMemoryFor) {
  std::optional<VisionModel> vision = served().vision;
  vision->preprocessor.video.pixels_max = 1 << 18;  // as that of pictures
  PlanPool pool({});
  const MediaLoader loader(config_.media, vision, pool);
  const auto open = [&loader](const std::string& file) {
    MediaSource source;
    source.path = "url";
    source.texts = {std::make_shared<const std::string>(data_uri(file))};
    source.pixels_min = 1 << 18;
    return loader.open(std::span(&source, 1), nullptr);
  };
  EXPECT_TRUE(open(bmp_file(64, 64)));  // 512 x 512
  const auto beyond = open(bmp_file(64, 66));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().kind, ApiErrorKind::image_too_large);
  EXPECT_THAT(beyond.error().message, testing::HasSubstr("512 x 544 pixels"));
}

TEST_F(PicturesTest, PixelsOfAllRequestsHaveALimit) {
  config_.media.decoded_bytes_max = 64 * 64 * 3;
  start();
  const auto chat_error = [this](const std::string& parts) {
    return error_of(post("/v1/chat/completions", chat_with(parts)));
  };
  const std::string one = image(data_uri(bmp_file(64, 64)));
  EXPECT_EQ(chat_error(one + "," + one),
            "400 image_too_large messages[0].content[0].image_url.url");
  EXPECT_EQ(post("/v1/chat/completions", chat_with(one)).status, 200);
  // The fake engine keeps its requests: as if they still waited.
  EXPECT_EQ(post("/v1/chat/completions", chat_with(one)).status, 429);
}

// Pictures of few bytes may have many pixels, each of which takes its time.
TEST_F(PicturesTest, PixelsOfOneRequestHaveALimitBeforeTheyAreDecoded) {
  config_.media.request_pixels_max = 3 * 64 * 64;
  start();
  const auto chat_error = [this](const std::string& parts) {
    return error_of(post("/v1/chat/completions", chat_with(parts)));
  };
  const std::string one = image(small_uri());
  EXPECT_EQ(post("/v1/chat/completions", chat_with(one + "," + one + "," + one)).status, 200);
  EXPECT_EQ(chat_error(one + "," + one + "," + one + "," + one),
            "400 image_too_large messages[0].content[3].image_url.url");
  const std::string frame = '"' + small_uri() + '"';
  const std::string frames = R"({"type":"video","video":[)" + frame + "," + frame + "]}";
  EXPECT_EQ(post("/v1/chat/completions", chat_with(frames + "," + one)).status, 200);
  EXPECT_EQ(chat_error(one + "," + one + "," + frames),
            "400 image_too_large messages[0].content[2].video");
}

TEST_F(PicturesTest, AreNotDecodedForAClientThatHasGone) {
  PlanPool pool({});
  const MediaLoader loader(config_.media, served().vision, pool);
  MediaSource source;
  source.path = "url";
  source.texts = {std::make_shared<const std::string>(small_uri())};
  const auto opened = loader.open(std::span(&source, 1), nullptr);
  ASSERT_TRUE(opened);
  std::atomic<bool> gone{false};
  EXPECT_TRUE(loader.decode(*opened, &gone));
  gone = true;
  EXPECT_EQ(loader.decode(*opened, &gone).error().kind, ApiErrorKind::not_ready);
}

TEST_F(PicturesTest, NotTooManyAreFetchedAtOnce) {
  config_.media.domains = {"pictures.test"};
  PlanPool pool({.waits_max = 0});
  const MediaLoader loader(config_.media, served().vision, pool);
  MediaSource source;
  source.path = "url";
  source.texts = {std::make_shared<const std::string>("http://pictures.test/a.png")};
  const auto opened = loader.open(std::span(&source, 1), nullptr);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ApiErrorKind::queue_full);
}

TEST_F(PicturesTest, WhatIsWrongNamesTheField) {
  config_.media.items_max = 2;
  config_.media.picture.encoded_bytes_max = 100'000;
  config_.media.picture.pixels_max = 10'000;
  start();
  const auto chat_error = [this](const std::string& url) {
    return error_of(post("/v1/chat/completions", chat_with(kText + "," + image(url))));
  };
  const std::string at = "messages[0].content[1].image_url.url";
  EXPECT_EQ(chat_error("data:image/png;base64,AAAA"), "400 invalid_image " + at);
  EXPECT_EQ(chat_error("data:image/png,abc"), "400 invalid_image " + at);
  EXPECT_EQ(chat_error("%%%"), "400 invalid_image " + at);
  EXPECT_EQ(chat_error(""), "400 invalid_image " + at);
  EXPECT_EQ(chat_error(data_uri(bmp_file(64, 64).substr(0, 500))), "400 invalid_image " + at);
  EXPECT_EQ(chat_error(data_uri(bmp_file(128, 128))), "400 image_too_large " + at);
  EXPECT_EQ(chat_error(data_uri(std::string(100'001, 'a'))), "400 image_too_large " + at);
  for (const char* url : {"http://example.org/a.png", "HTTPS://example.org/a.png",
                          "file:///etc/passwd", "http://127.0.0.1/"}) {
    EXPECT_EQ(chat_error(url), "400 media_url_not_allowed " + at) << url;
  }
  EXPECT_EQ(error_of(post("/v1/chat/completions",
                          chat_with(image(small_uri()) + "," + image(small_uri()) + "," +
                                    image(small_uri())))),
            "400 invalid_value messages[0].content[2].image_url.url");
  EXPECT_EQ(
      error_of(post("/v1/responses", R"({"input":[{"role":"user","content":[{"type":"input_image",)"
                                     R"("image_url":"http://example.org"}]}]})")),
      "400 media_url_not_allowed input[0].content[0].image_url");
  const TestReply messages =
      post("/v1/messages", R"({"messages":[{"role":"user","content":[{"type":"image","source":)"
                           R"({"type":"base64","media_type":"image/png","data":"http://x/"}}]}]})");
  EXPECT_EQ(messages.status, 400);
  EXPECT_NE(messages.body.find("messages[0].content[0].source.data"), std::string::npos);
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(PicturesTest, FilesOfTheMediaRootAreRead) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / ("pictures_" + std::to_string(::getpid()));
  std::filesystem::create_directories(root);
  std::ofstream(root / "a.bmp", std::ios::binary) << bmp_file(64, 64);
  config_.media.root = root;
  start();
  EXPECT_EQ(
      post("/v1/chat/completions", chat_with(image("file://" + (root / "a.bmp").string()))).status,
      200);
  EXPECT_EQ(error_of(post("/v1/chat/completions", chat_with(image("file:///etc/passwd")))),
            "400 media_url_not_allowed messages[0].content[0].image_url.url");
  std::filesystem::remove_all(root);
}

TEST_F(PicturesTest, NamedHostsMustBeOnTheInternet) {
  config_.media.domains = {"localhost", "127.0.0.1"};
  start();
  for (const char* url :
       {"http://localhost:1/a.png", "http://127.0.0.1:1/a.png", "http://elsewhere.test/a.png"}) {
    EXPECT_EQ(error_of(post("/v1/chat/completions", chat_with(image(url)))),
              "400 media_url_not_allowed messages[0].content[0].image_url.url")
        << url;
  }
}

TEST_F(PicturesTest, TheyCountForTheContext) {
  start();
  std::string parts = kText;
  for (int i = 0; i < 5; ++i) {
    parts += "," + image(data_uri(bmp_file(512, 512)));  // 256 placeholders
  }
  EXPECT_EQ(error_of(post("/v1/chat/completions", chat_with(parts))),
            "400 context_length_exceeded messages");
}

TEST_F(PicturesTest, ClientsAreToldThatItSees) {
  start();
  const auto entry = get("/v1/models/tiny").json();
  EXPECT_TRUE(entry.at("capabilities").at("vision").as_bool());
  EXPECT_EQ(entry.at("architecture").at("input_modalities").as_array().size(), 3U);
  EXPECT_TRUE(get("/props").json().at("modalities").at("vision").as_bool());
}

class BlindServerTest : public ServerTest {};

TEST_F(BlindServerTest, AModelThatReadsTextOnlySaysSo) {
  start();
  const TestReply reply = post("/v1/chat/completions", chat_with(image(small_uri())));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("code").as_string(), "unsupported_content");
  EXPECT_FALSE(get("/v1/models/tiny").json().at("capabilities").at("vision").as_bool());
}

}  // namespace
}  // namespace sluice
